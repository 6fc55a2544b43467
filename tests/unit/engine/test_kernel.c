/* Kernels of a live sandbox and what runs in them: cells one after the other, interrupts, the death
 * of a kernel and the next one; and commands beside them. */

#include "live_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CELL_BEGUN LIVE_BEGUN " a:start execute"
#define NEXT       "died W_KERNEL"
/* What prints=16 says. */
#define FREE_READS                                                                                 \
    " a:stdout a:stdout a:stdout a:stdout a:stdout a:stdout a:stdout a:stdout a:stdout a:stdout"   \
    " a:stdout a:stdout a:stdout a:stdout a:stdout a:stdout"

static const struct rig_case cells[] = {
    {"a cell runs, and its files are asked for", LIVE "cell=a " SAY_DONE "changed=x",
     CELL_BEGUN " I_CHANGES a:done:ok"},
    {"what it prints is told as it comes", LIVE "cell=a out=x err=y " SAY_DONE "changed",
     CELL_BEGUN " a:stdout a:stderr I_CHANGES a:done:ok"},
    {"the next one waits for it", LIVE "cell=a cell=b " SAY_DONE "changed",
     CELL_BEGUN " I_CHANGES a:done:ok b:start execute"},
    {"what was printed between two is the next one's", LIVE "out=x cell=a",
     LIVE_BEGUN " a:start a:stdout execute"},
    {"what is said of another cell is not heard", LIVE "cell=a say={\"ev\":\"done\",\"id\":\"x\"}",
     CELL_BEGUN},
    {"an exception is its error",
     LIVE "cell=a say={\"ev\":\"error\",\"id\":\"CELL\",\"name\":\"E\"} "
          "say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"error\"} changed",
     CELL_BEGUN " a:error I_CHANGES a:done:error"},
    {"what it shows is told",
     LIVE
     "cell=a say={\"ev\":\"display\",\"id\":\"CELL\",\"data\":{\"text/plain\":\"x\"}} " SAY_DONE
     "changed",
     CELL_BEGUN " a:display I_CHANGES a:done:ok"},
    {"one that waits to be heard goes on",
     LIVE "cell=a say={\"ev\":\"comm\",\"id\":\"CELL\",\"go\":7}", CELL_BEGUN " go"},
    {"its input is asked for and answered",
     LIVE "cell=a answer=x say={\"ev\":\"input\",\"id\":\"CELL\"} answer=x answer=x",
     CELL_BEGUN " not_waiting a:input input not_waiting"},
    {"a refusal is in its result", LIVE "cell=a denied " SAY_DONE "changed",
     CELL_BEGUN " I_CHANGES a:done:ok-denied"},

    {"an interrupt that it heard; the next one waits until it is over",
     LIVE "cell=a cell=b interrupt reply "
          "say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"interrupted\"} changed " SAY_REPLY,
     CELL_BEGUN " INT I_CHANGES a:done:interrupted sync b:start execute"},
    {"an interrupt that it ignored is repeated, and then it is killed",
     LIVE "cell=a interrupt time=cell time=cell reply reply reply killed=9 changed more up",
     CELL_BEGUN " INT INT KILL a:error " NEXT " I_CHANGES a:done:killed back W_SHUT K_LIVE"},
    {"its time is up: an interrupt first",
     LIVE "cell=a time=cell reply say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"interrupted\"} "
          "changed",
     CELL_BEGUN " INT I_CHANGES a:done:timeout/time sync"},
    {"its processor time is up",
     LIVE "cell=a cpu=5000000 time=look reply "
          "say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"interrupted\"} changed",
     CELL_BEGUN " INT I_CHANGES a:done:interrupted/cpu sync"},
    {"one that waits is called off", LIVE "cell=a cell=b drop=b " SAY_DONE "changed",
     CELL_BEGUN " b:fail:interrupted I_CHANGES a:done:ok"},
    {"with nothing to interrupt, the kernel's tasks are",
     LIVE "interrupt reply " SAY_REPLY "cell=a", LIVE_BEGUN " INT sync a:start execute"},
    {"a cell that comes meanwhile waits", LIVE "interrupt cell=a reply " SAY_REPLY,
     LIVE_BEGUN " INT sync a:start execute"},

    {"it dies with its kernel, and the next one has another",
     LIVE "cell=a cell=b killed=11 changed more up",
     CELL_BEGUN " a:error " NEXT " I_CHANGES a:done:killed back b:start W_SHUT K_LIVE execute"},
    {"it was killed for its memory", LIVE "cell=a oom killed=9 changed",
     CELL_BEGUN " a:error " NEXT " I_CHANGES a:done:memory_exceeded/memory"},
    {"what was said before the death counts", LIVE "cell=a " SAY_DONE "killed=9 changed",
     CELL_BEGUN " I_CHANGES died W_KERNEL a:done:ok"},
    {"the sandbox dies while its files are asked for", LIVE "cell=a " SAY_DONE "gone",
     CELL_BEGUN " I_CHANGES a:fail:sandbox_gone forgotten ended:lost W_END"},
};

static const struct rig_case kernels[] = {
    {"a kernel that dies is replaced", LIVE "killed=9 more up cell=a",
     LIVE_BEGUN " " NEXT " back W_SHUT K_LIVE a:start execute"},
    {"one that cannot be replaced at once is tried again",
     LIVE "killed=9 no-more time=retry more up",
     LIVE_BEGUN " " NEXT " died W_KERNEL back W_SHUT K_LIVE"},
    {"after three failures nobody tries, until somebody wants it",
     LIVE "killed=9 no-more time=retry no-more time=retry no-more cell=a more up",
     LIVE_BEGUN " " NEXT " died W_KERNEL died W_KERNEL died dead W_KERNEL back a:start W_SHUT "
                "K_LIVE execute"},
    {"a success in between is forgiven",
     LIVE
     "killed=9 no-more time=retry no-more time=retry more up killed=9 no-more time=retry more up",
     LIVE_BEGUN " " NEXT " died W_KERNEL died W_KERNEL back W_SHUT K_LIVE " NEXT
                " died W_KERNEL back W_SHUT K_LIVE"},
    {"one that closes its socket and does not die is killed", LIVE "down time=retry reply killed=9",
     LIVE_BEGUN " KILL " NEXT},
    {"one that says what no kernel says is killed", LIVE "cell=a up reply killed=9 changed",
     CELL_BEGUN " KILL a:error " NEXT " I_CHANGES a:done:killed"},
    {"one that dies before it is ready is tried again",
     LIVE "killed=9 more exit=1 time=retry more up",
     LIVE_BEGUN " " NEXT " died W_KERNEL back W_SHUT K_LIVE"},
    {"one more kernel", LIVE "kernel more up cell=a",
     LIVE_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE a:start execute"},
    {"one more that cannot be had", LIVE "kernel no-more time=retry no-more time=retry no-more",
     LIVE_BEGUN " W_KERNEL died W_KERNEL died W_KERNEL died kernel:fail:kernel_failed forgotten"},
    {"two kernels run side by side", LIVE "cell=a kernel more up cell=b",
     CELL_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE b:start execute"},
    {"a restart fails what runs and what waits",
     LIVE "cell=a cell=b restart-kernel reply killed=9 changed more up",
     CELL_BEGUN " b:fail:interrupted KILL a:error " NEXT
                " I_CHANGES a:done:killed back kernel:ready W_SHUT K_LIVE"},
    {"the default kernel stays", LIVE "delete-kernel", LIVE_BEGUN " is_default"},
    {"another one is deleted with what runs in it",
     LIVE "kernel more up cell=a delete-kernel reply killed=9 changed",
     LIVE_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE a:start execute KILL a:error I_CHANGES "
                "a:done:killed forgotten"},
    {"one that is deleted before it is there never is",
     LIVE "kernel delete-kernel more up reply killed=9",
     LIVE_BEGUN " W_KERNEL KILL KILL kernel:fail:kernel_failed forgotten"},
};

static const struct rig_case commands[] = {
    {"a command runs beside", LIVE "command=c more up down out=x exit=0",
     LIVE_BEGUN " W_KERNEL c:start W_SHUT K_EXEC c:stdout c:done:exited"},
    {"it dies of a signal", LIVE "command=c more up down killed=15",
     LIVE_BEGUN " W_KERNEL c:start W_SHUT K_EXEC c:done:killed"},
    {"its time is up", LIVE "command=c more up down time=command reply killed=9",
     LIVE_BEGUN " W_KERNEL c:start W_SHUT K_EXEC KILL c:done:timeout"},
    {"a signal waits until it is the program", LIVE "command=c more up signal=15 down",
     LIVE_BEGUN " W_KERNEL c:start W_SHUT K_EXEC TERM"},
    {"it could not be started", LIVE "command=c no-more", LIVE_BEGUN " W_KERNEL c:done:killed"},
    {"what it cannot be, it says", LIVE "command=c more up unfit exit=126",
     LIVE_BEGUN " W_KERNEL c:start W_SHUT K_EXEC c:done:killed"},
    {"it is killed while it is asked for", LIVE "command=c signal=9 more up reply killed=9",
     LIVE_BEGUN " W_KERNEL KILL KILL c:done:killed"},
    {"it ends with its sandbox", LIVE "command=c more up down end",
     LIVE_BEGUN " W_KERNEL c:start W_SHUT K_EXEC c:done:killed forgotten ended:asked W_END"},
};

#define SAID_DONE "{\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"ok\"} "
#define SAID_X    "{\"ev\":\"x\"} "

static const struct rig_case talk[] = {
    {"a long message is read beside the loop",
     LIVE "busy=2 cell=a say-long=" SAID_DONE "idle changed",
     CELL_BEGUN " idle I_CHANGES a:done:ok"},
    {"what is said in a file is long work, however small",
     LIVE "busy=1 cell=a say-file=" SAID_DONE "short idle changed",
     CELL_BEGUN " short idle I_CHANGES a:done:ok"},
    {"nothing else that it says overtakes that",
     LIVE "busy=1 cell=a say-file=" SAID_X SAY_DONE "idle changed",
     CELL_BEGUN " idle I_CHANGES a:done:ok"},
    {"its end waits for what it said before",
     LIVE "busy=1 cell=a say-file=" SAID_DONE "say-file=" SAID_X "killed=9 idle changed more up",
     CELL_BEGUN " idle " NEXT " I_CHANGES a:done:ok back W_SHUT K_LIVE"},
    {"what it said before is not its successor's",
     LIVE "busy=1 cell=a say-file=" SAID_X "say-file=" SAID_DONE "killed=9 idle changed more up",
     CELL_BEGUN " idle a:error " NEXT " I_CHANGES a:done:killed back W_SHUT K_LIVE"},
    {"nor that of one that was deleted meanwhile",
     LIVE "kernel more up busy=1 cell=a say-file=" SAID_X "say-file=" SAID_X
          "killed=9 delete-kernel idle reply changed",
     LIVE_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE a:start execute KILL idle a:error "
                "I_CHANGES a:done:killed forgotten"},
    {"nor that of one whose sandbox has ended",
     LIVE "busy=1 cell=a say-file=" SAID_DONE "say-file=" SAID_X "killed=9 end idle",
     CELL_BEGUN " a:fail:sandbox_gone forgotten ended:asked W_END idle"},

    {"the time of one that is being read is not up",
     LIVE "busy=1 cell=a say-file=" SAID_DONE "time=cell time=cell idle changed",
     CELL_BEGUN " idle I_CHANGES a:done:ok"},
    {"nor of one that rests",
     LIVE "brief=a cost=4000 prints=16 out=a " SAY_DONE "time=cell time=rest changed",
     CELL_BEGUN FREE_READS " a:stdout rest I_CHANGES a:done:ok"},
    {"but it is put off twice at the most",
     LIVE "busy=1 cell=a say-file=" SAID_DONE "time=cell time=cell time=cell idle reply changed",
     CELL_BEGUN " INT idle I_CHANGES a:done:timeout/time sync"},
    {"what it prints without end is read after a rest",
     LIVE "cell=a cost=300 prints=16 out=a out=b time=rest",
     CELL_BEGUN FREE_READS " a:stdout rest a:stdout"},

    {"256 may wait, in all kernels together",
     LIVE "cell=a kernel more up cell=b cells=128 default cells=127 cell=c cell=d",
     CELL_BEGUN " W_KERNEL back kernel:ready W_SHUT K_LIVE b:start execute d:queue_full"},
};

static void a_cell_runs_as_the_script_says(void **state) {
    (void)state;
    live_rig_play(cells, sizeof cells / sizeof *cells);
}

static void a_kernel_lives_as_the_script_says(void **state) {
    (void)state;
    live_rig_play(kernels, sizeof kernels / sizeof *kernels);
}

static void a_kernel_is_heard_as_the_script_says(void **state) {
    (void)state;
    live_rig_play(talk, sizeof talk / sizeof *talk);
}

static void a_command_runs_as_the_script_says(void **state) {
    (void)state;
    live_rig_play(commands, sizeof commands / sizeof *commands);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_runs_as_the_script_says),
        cmocka_unit_test(a_kernel_lives_as_the_script_says),
        cmocka_unit_test(a_kernel_is_heard_as_the_script_says),
        cmocka_unit_test(a_command_runs_as_the_script_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
