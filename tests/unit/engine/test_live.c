/* Live sandboxes: their birth, their life time, their end, and the server's. */

#include "live_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct rig_case cases[] = {
    {"it is ready with its kernel, and kept from then on", LIVE, LIVE_BEGUN},
    {"the machine has no sandbox in time", "profile live time=life", "W_MAKE fail:queue_timeout"},
    {"who does not want it any more gets none", "profile live cancel made up", "W_MAKE W_END"},
    {"its profile breaks", "profile live broken", "W_MAKE fail:profile_broken"},
    {"it dies before it is ready", "profile live made gone", "W_MAKE W_END"},
    {"it is ready when the host's directories are there", "profile live-binds made up reply reply",
     "W_MAKE I_BIND I_BIND ready W_SHUT W_KEEP K_LIVE"},
    {"one of them cannot be had", "profile live-binds made up reply error",
     "W_MAKE I_BIND I_BIND fail:bad_bind W_END"},
    {"it dies before they are there", "profile live-binds made up gone",
     "W_MAKE I_BIND I_BIND fail:sandbox_gone W_END"},

    {"idle for too long, it ends", LIVE "time=life find",
     LIVE_BEGUN " forgotten ended:idle W_END sandbox_gone"},
    {"in use it is not idle, and ends when its time is up", LIVE "hold time=life time=life",
     LIVE_BEGUN " forgotten ended:ttl W_END"},
    {"idleness begins anew", LIVE "hold time=life release time=life",
     LIVE_BEGUN " forgotten ended:idle W_END"},
    {"somebody ends it", LIVE "end find", LIVE_BEGUN " forgotten ended:asked W_END sandbox_gone"},
    {"it is lost with a process of ours", LIVE "gone find",
     LIVE_BEGUN " forgotten ended:lost W_END sandbox_gone"},
    {"what runs in it fails with it", LIVE "cell=a cell=b end",
     LIVE_BEGUN " a:start execute a:fail:sandbox_gone b:fail:sandbox_gone forgotten ended:asked "
                "W_END"},

    {"nothing begins while it is paused", LIVE "pause cell=a thaw", LIVE_BEGUN " a:start execute"},

    {"the next server finds it", LIVE "death settled find", LIVE_BEGUN " W_SHUT I_ECHO found"},
    {"and its kernel goes on", LIVE "death cell=a " SAY_DONE "changed",
     LIVE_BEGUN " W_SHUT I_ECHO a:start execute I_CHANGES a:done:ok"},
    {"an execution goes on under the next server", LIVE "cell=a death out=x " SAY_DONE "changed",
     LIVE_BEGUN " a:start execute again:a a:start W_SHUT sync I_ECHO a:stdout I_CHANGES a:done:ok"},
    {"its end was lost with the server", LIVE "cell=a death " SAY_REPLY,
     LIVE_BEGUN " a:start execute again:a a:start W_SHUT sync I_ECHO a:fail:sandbox_lost"},
    {"its kernel died meanwhile", LIVE "cell=a death killed=9 changed",
     LIVE_BEGUN
     " a:start execute again:a a:start W_SHUT sync I_ECHO a:error died W_KERNEL I_CHANGES "
     "a:done:killed"},
    {"the next server interrupts it", LIVE "cell=a death interrupt reply " SAY_DONE "changed",
     LIVE_BEGUN " a:start execute again:a a:start W_SHUT sync I_ECHO INT I_CHANGES a:done:ok sync"},
    {"a second kernel goes on as well", LIVE "kernel more up death find",
     LIVE_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE W_SHUT W_SHUT I_ECHO found"},
    {"a kernel that was only asked for is forgotten, and its process killed",
     LIVE "kernel death more up reply reply killed=9",
     LIVE_BEGUN " W_KERNEL W_SHUT I_ECHO KILL KILL"},
    {"a command goes on", LIVE "command=c more up down death out=x exit=0",
     LIVE_BEGUN
     " W_KERNEL c:start W_SHUT K_EXEC again:c W_SHUT W_SHUT I_ECHO c:stdout c:done:exited"},
    {"whether a socket was there, the next server cannot know, and looks",
     LIVE "death cell=a no-route=1 " SAY_DONE "changed",
     LIVE_BEGUN " W_SHUT I_ECHO a:start execute I_CHANGES a:done:ok-denied"},
    {"it ends under the next server as well", LIVE "death end",
     LIVE_BEGUN " W_SHUT I_ECHO forgotten ended:asked W_END"},
};

static void a_live_sandbox_lives_as_the_script_says(void **state) {
    (void)state;
    live_rig_play(cases, sizeof cases / sizeof *cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_live_sandbox_lives_as_the_script_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
