/* See file_type.h. */

#include "api/files/file_type.h"

#include "api/files/paths.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *file_type(const char *path) {
    static const char *const types[][2] = {
        {"txt", "text/plain"},
        {"log", "text/plain"},
        {"py", "text/x-python"},
        {"csv", "text/csv"},
        {"tsv", "text/tab-separated-values"},
        {"md", "text/markdown"},
        {"htm", "text/html"},
        {"html", "text/html"},
        {"css", "text/css"},
        {"js", "text/javascript"},
        {"json", "application/json"},
        {"xml", "text/xml"},
        {"pdf", "application/pdf"},
        {"zip", "application/zip"},
        {"tar", "application/x-tar"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"jpeg", "image/jpeg"},
        {"gif", "image/gif"},
        {"bmp", "image/bmp"},
        {"svg", "image/svg+xml"},
        {"webp", "image/webp"},
        {"ico", "image/x-icon"},
        {"tif", "image/tiff"},
        {"tiff", "image/tiff"},
        {"mp3", "audio/mpeg"},
        {"wav", "audio/x-wav"},
        {"mp4", "video/mp4"},
        {"mpeg", "video/mpeg"},
    };
    const char *dot = strrchr(paths_name(path), '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++) {
        if (strcasecmp(dot + 1, types[i][0]) == 0)
            return types[i][1];
    }
    return "application/octet-stream";
}
