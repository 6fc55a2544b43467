/* See metrics.h. The text format of Prometheus. */

#include "api/core/metrics.h"

#include <stdio.h>
#include <string.h>

void metrics_request(struct metrics *m, const char *method, const char *path, int status,
                     double seconds) {
    histogram_add(&m->request_s, seconds);
    for (unsigned i = 0; i < m->nroutes; i++) {
        struct route_count *r = &m->routes[i];
        if (r->status == status && strcmp(r->path, path) == 0 && strcmp(r->method, method) == 0) {
            r->n++;
            return;
        }
    }
    if (m->nroutes < sizeof m->routes / sizeof *m->routes)
        m->routes[m->nroutes++] = (struct route_count){method, path, status, 1};
}

void metrics_end(struct metrics *m, const char *status, const char *profile, double wall_s,
                 double queue_s) {
    histogram_add(&m->wall_s, wall_s);
    histogram_add(&m->queue_s, queue_s);
    for (unsigned i = 0; i < m->nends; i++) {
        if (strcmp(m->ends[i].status, status) == 0 && strcmp(m->ends[i].profile, profile) == 0) {
            m->ends[i].n++;
            return;
        }
    }
    if (m->nends == METRICS_ENDS)
        return;
    struct end_count *c = &m->ends[m->nends++];
    snprintf(c->status, sizeof c->status, "%s", status);
    snprintf(c->profile, sizeof c->profile, "%s", profile);
    c->n = 1;
}

void metrics_refused(struct metrics *m, const char *code) {
    unsigned i = 0;
    while (i < m->nrefused && strcmp(m->refused[i].code, code) != 0)
        i++;
    if (i == METRICS_REFUSED)
        return;
    if (i == m->nrefused)
        m->refused[m->nrefused++] = (struct refused_count){.code = code};
    m->refused[i].n++;
}

static void head(struct buf *to, const char *name, const char *help, const char *type) {
    buf_addf(to, "# HELP cloche_%s %s\n# TYPE cloche_%s %s\n", name, help, name, type);
}

void metrics_histogram(struct buf *to, const char *name, const char *help,
                       const struct histogram *h) {
    uint64_t sum = 0;
    head(to, name, help, "histogram");
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sum += h->buckets[i];
        buf_addf(to, "cloche_%s_bucket{le=\"%g\"} %llu\n", name, histogram_bounds[i],
                 (unsigned long long)sum);
    }
    buf_addf(to, "cloche_%s_bucket{le=\"+Inf\"} %llu\ncloche_%s_sum %.6f\ncloche_%s_count %llu\n",
             name, (unsigned long long)h->count, name, h->sum, name, (unsigned long long)h->count);
}

void metrics_gauge(struct buf *to, const char *name, const char *help, double value) {
    head(to, name, help, "gauge");
    buf_addf(to, "cloche_%s %.15g\n", name, value);
}

void metrics_write(const struct metrics *m, struct buf *to) {
    head(to, "requests_total", "Requests by route and status.", "counter");
    for (unsigned i = 0; i < m->nroutes; i++)
        buf_addf(to, "cloche_requests_total{method=\"%s\",route=\"%s\",status=\"%d\"} %llu\n",
                 m->routes[i].method, m->routes[i].path, m->routes[i].status,
                 (unsigned long long)m->routes[i].n);
    head(to, "executions_total", "Executions by status and profile.", "counter");
    for (unsigned i = 0; i < m->nends; i++)
        buf_addf(to, "cloche_executions_total{status=\"%s\",profile=\"%s\"} %llu\n",
                 m->ends[i].status, m->ends[i].profile, (unsigned long long)m->ends[i].n);
    head(to, "refused_total", "Requests and batch items answered with 429 or 503, by code.",
         "counter");
    for (unsigned i = 0; i < m->nrefused; i++)
        buf_addf(to, "cloche_refused_total{code=\"%s\"} %llu\n", m->refused[i].code,
                 (unsigned long long)m->refused[i].n);
    metrics_histogram(to, "request_seconds", "Time from a request's headers to its end.",
                      &m->request_s);
    metrics_histogram(to, "execution_seconds", "Wall clock of programs.", &m->wall_s);
    metrics_histogram(to, "queue_seconds", "Time that programs waited for a sandbox.", &m->queue_s);
}
