#pragma once
/* Processor time of a live sandbox outside of its executions; for live/ only. */

struct live;

void cpu_account_begin(struct live *l); /* its sandbox is there */
void cpu_account_end(struct live *l);   /* while that is there */
