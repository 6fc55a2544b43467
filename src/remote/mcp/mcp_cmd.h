#pragma once

int remote_mcp(int argc, char **argv);
