// SPDX-License-Identifier: GPL-2.0-only
/* Entry point; the commands are in cmd_*.c. */
int main(void)
{
	return 0;
}
