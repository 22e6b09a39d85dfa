# bash completion for kvmtop; made by: kvmtop --completion bash
_kvmtop()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local words

	case $prev in
	--delay|-d)
		words='0.1 0.5 1 2 5 10'
		;;
	--iterations|-n)
		words=''
		;;
	--pid|-p)
		words=''
		words=$(cd /proc && printf '%s ' [0-9]*) ;;
	--vm|-M)
		words=''
		;;
	--vcpu)
		words=''
		;;
	--sort|-s)
		words='name vm_id uuid title pid vmm nvcpu nthread cpu_pct guest_pct usr_pct sys_pct steal_pct throt_pct wait_pct demand_pct csw_per_s mig_per_s majflt_per_s blk_pct vcpu_pct io_pct steal_max_pct steal_max_vcpu steal_source quota_pct slow_exits why exits_per_s exit_pct exit_on_pct exit_off_pct p50_ns p99_ns max_ns top_exit top_exit_pct open_exit open_ns lost quality samples host_kernel_pct host_user_pct guest_kernel_pct guest_user_pct hot_symbol hot_symbol_pct waited_pct wakeups_per_s wake_p50_ns wake_p99_ns pmu_msr_per_s pmu_msr_pct cgroup vm vcpu kvm_id tid comm state cpu pin numa_node tsc_offset tsc_offset_s tsc_scale tsc_apart_ns tsc_changes pmu pmu_global pmu_source pmu_msrs pmu_refused help'
		;;
	--key|-k)
		words='name vm_id uuid title pid vmm nvcpu nthread cpu_pct guest_pct usr_pct sys_pct steal_pct throt_pct wait_pct demand_pct csw_per_s mig_per_s majflt_per_s blk_pct vcpu_pct io_pct steal_max_pct steal_max_vcpu steal_source quota_pct slow_exits why exits_per_s exit_pct exit_on_pct exit_off_pct p50_ns p99_ns max_ns top_exit top_exit_pct open_exit open_ns lost quality samples host_kernel_pct host_user_pct guest_kernel_pct guest_user_pct hot_symbol hot_symbol_pct waited_pct wakeups_per_s wake_p50_ns wake_p99_ns pmu_msr_per_s pmu_msr_pct cgroup vm vcpu kvm_id tid comm state cpu pin numa_node tsc_offset tsc_offset_s tsc_scale tsc_apart_ns tsc_changes pmu pmu_global pmu_source pmu_msrs pmu_refused help'
		;;
	--format)
		words='text csv json prometheus'
		;;
	--table)
		words='cpu host vm vcpu tsc exit vcpu-exit exit-code slow symbol vcpu-symbol waited vcpu-waited pmu pcpu thread task finding'
		;;
	--fields)
		words='name vm_id uuid title pid vmm nvcpu nthread cpu_pct guest_pct usr_pct sys_pct steal_pct throt_pct wait_pct demand_pct csw_per_s mig_per_s majflt_per_s blk_pct vcpu_pct io_pct steal_max_pct steal_max_vcpu steal_source quota_pct slow_exits why exits_per_s exit_pct exit_on_pct exit_off_pct p50_ns p99_ns max_ns top_exit top_exit_pct open_exit open_ns lost quality samples host_kernel_pct host_user_pct guest_kernel_pct guest_user_pct hot_symbol hot_symbol_pct waited_pct wakeups_per_s wake_p50_ns wake_p99_ns pmu_msr_per_s pmu_msr_pct cgroup vm vcpu kvm_id tid comm state cpu pin numa_node tsc_offset tsc_offset_s tsc_scale tsc_apart_ns tsc_changes pmu pmu_global pmu_source pmu_msrs pmu_refused help'
		;;
	--collectors)
		words='kvm_events vcpu_events guest_sampling vms sched waits host_cpu tsc vpmu'
		;;
	--event)
		words='vmexit mmio ioport msr hypercall userexit halt all'
		;;
	--when)
		words=''
		;;
	--max-overhead)
		words='0 1 2 5 10'
		;;
	--events-by)
		words='auto bpf perf'
		;;
	--threads-by)
		words='auto proc'
		;;
	--freq|-F)
		words='0 97 997 4999'
		;;
	--sample-with)
		words='auto hw clock'
		;;
	--slow)
		words='100us 500us 1ms 5ms'
		;;
	--color)
		words='auto never always 8 256 truecolor'
		;;
	--root)
		words=''
		words=$(compgen -d -- "$cur") && mapfile -t COMPREPLY <<<"$words"
		return ;;
	--guestkallsyms)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--guestmodules)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--guestvmlinux)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--guestmount)
		words=''
		words=$(compgen -d -- "$cur") && mapfile -t COMPREPLY <<<"$words"
		return ;;
	--output|-o)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--for)
		words='1 5 10 60'
		;;
	--keep)
		words=''
		;;
	--max-size)
		words='500M 1G 2G 10G'
		;;
	--at)
		words=''
		;;
	--perf)
		words='10s 30s 60s'
		;;
	--rows)
		words='0 10 20 50'
		;;
	--input|-i)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--host-trace|-H)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--guest-trace|-G)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--offset)
		words=''
		;;
	--scaling)
		words=''
		;;
	--tsc)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--recording)
		words=''
		compopt -o default 2>/dev/null
		return ;;
	--map)
		words=''
		;;
	--completion)
		words='bash zsh fish'
		;;
	*)
		words='record replay diff bundle demo doctor guest-symbols report merge trace --batch --delay --iterations --pid --vm --vcpu --sort --key --reverse --format --table --fields --collectors --event --totals --when --max-overhead --events-by --threads-by --freq --sample-with --host --guest --slow --color --root --guestkallsyms --guestmodules --guestvmlinux --guestmount --output --for --keep --max-size --at --anonymize --perf --rows --input --perf-compat --explain-perf --host-trace --guest-trace --offset --scaling --tsc --recording --map --completion --version --help ' ;;
	esac
	words=$(compgen -W "$words" -- "$cur") && mapfile -t COMPREPLY <<<"$words"
}
complete -F _kvmtop kvmtop
