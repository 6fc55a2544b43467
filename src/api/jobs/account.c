/* See account.h. */

#include "api/jobs/account.h"

#include "api/core/quota.h"

void account_execution(const struct caller *who, const char *id, const struct audit_code *code,
                       const struct receipt *t, const char *why) {
    struct api *a = who->api;
    const char *status = !why ? t->status : *why ? why : "internal";
    metrics_end(&a->metrics, status, t->profile, t->wall_ms / 1e3, t->queue_ms / 1e3);
    quota_used(a->quota, who->key, t->cpu_ms / 1e3);
    audit_write(&a->audit, &(struct audit_line){.who = who,
                                                .execution = id,
                                                .code = code,
                                                .status = status,
                                                .profile = t->profile,
                                                .receipt = t,
                                                .denied = t->denied});
}
