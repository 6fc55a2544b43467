#pragma once
/* `cloche run --server URL`. */

int remote_run(int argc, char **argv);
