#pragma once
/* Names only, no code: the warden opens these files, the server reads and writes them. */

/* cgroup knobs, in the order in which they travel. The server reads and writes them directly. */
enum cgroup_knob {
    KNOB_MEMORY_MAX,   /* rw: bytes */
    KNOB_MEMORY_PEAK,  /* r: bytes */
    KNOB_MEMORY_USAGE, /* r: bytes */
    KNOB_MEMORY_STAT,  /* r: what it is made of */
    KNOB_MEMORY_OOM,   /* r: v1 memory.oom_control, v2 memory.events: line "oom_kill N" */
    KNOB_CPU_MAX,      /* rw: v1 cpu.cfs_quota_us (microseconds per 100 ms, -1), v2 cpu.max */
    KNOB_CPU_USAGE,    /* r: v1 cpuacct.usage (ns), v2 cpu.stat: line "usage_usec N" */
    KNOB_PIDS_MAX,     /* rw */
    KNOB_PIDS_EVENTS,  /* r: line "max N" */
    KNOB_PIDS_USAGE,   /* r: processes and threads */
    KNOB_FREEZE,       /* rw: v1 freezer.state (FROZEN, THAWED), v2 cgroup.freeze (1, 0); without a
                          freezer it is a file that cannot be written */
    KNOBS_
};
