#pragma once
/* The handlers of the API; routes.c lists them. */

struct call;

void do_execute(struct call *c);
void do_execute_stream(struct call *c);
void do_execute_ws(struct call *c);
void do_batch(struct call *c);
void do_execution(struct call *c);
void do_execution_events(struct call *c);
void do_upload(struct call *c);
void do_files(struct call *c);
void do_download(struct call *c);
void do_delete(struct call *c);
void do_health(struct call *c);
void do_info(struct call *c);
void do_profiles(struct call *c);
void do_metrics(struct call *c);
void do_openapi(struct call *c);
void do_asset(struct call *c);
void do_root(struct call *c);

extern const struct schema batch_schema;
