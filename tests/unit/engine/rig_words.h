#pragma once
/* The words that every script knows (rig.h): what happens to the engine. */

#include <stdbool.h>

struct rig;
struct rig_sandbox;

/* False when it is not one of them. */
bool rig_word(struct rig *r, const char *name, const char *value);
/* The warden hands over what an earlier server had kept. */
void rig_hand_over(struct rig *r, const struct rig_sandbox *s);
