# Sourced by the scripts that boot Debian's kernels in qemu, from the root of the tree:
# script/test-cgroup-v2 and script/test-kernels.

qemu_work=build/qemu
qemu_root=$qemu_work/root # becomes the initrd
mkdir -p "$qemu_work"
exec 8>"$qemu_work.lock" # one kernel at a time
flock 8

# Installs what the host needs for it.
qemu_programs() {
    local program missing=()
    for program in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio xz:xz-utils; do
        command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
    fi
}

# qemu_kernel NAME [APT-OPTION...]: prints where the kernel's package is on which the package NAME
# depends. It is fetched if need be.
qemu_kernel() {
    local name=$1 package
    shift
    package=$(apt-cache "$@" depends "$name" | sed -n 's/.*Depends: //p' | head -n 1)
    [ -n "$package" ] || { echo "apt knows no $name" >&2; return 1; }
    compgen -G "$qemu_work/${package}_*.deb" >/dev/null ||
        (cd "$qemu_work" && apt-get "$@" download -q "$package" >&2) || return 1
    echo "$qemu_work/$package"_*.deb
}

# qemu_begin INIT: a root of busybox and INIT.
qemu_begin() {
    rm -rf "$qemu_root"
    mkdir -p "$qemu_root"/{bin,dev,etc,proc,sys,work,tmp}
    cp "$1" "$qemu_root/init"
    cp "$(command -v busybox)" "$qemu_root/bin/busybox"
}

# qemu_copy PROGRAM PLACE: with its libraries.
qemu_copy() {
    cp "$1" "$qemu_root/$2"
    ldd "$1" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$qemu_root${library%/*}"
        cp -L "$library" "$qemu_root$library"
    done
}

# qemu_unpack DEB: the kernel that is booted next.
qemu_unpack() {
    rm -rf "$qemu_work/kernel"
    dpkg-deb -x "$1" "$qemu_work/kernel"
}

# qemu_modules FILE-OR-DIRECTORY...: into the root, of the kernel that was unpacked. What it does
# not have is built in. busybox loads no compressed ones.
qemu_modules() {
    local from to found=() one
    from=$(find "$qemu_work/kernel" -path '*/lib/modules/*/kernel' -prune)
    to=$qemu_root/lib/modules/$(basename "${from%/kernel}")
    rm -rf "$qemu_root/lib/modules"
    mkdir -p "$to"
    for one in "$@"; do
        mapfile -t -O ${#found[@]} found < <(cd "$from" && compgen -G "$one")
    done
    (cd "${from%/kernel}" && cp -r --parents "${found[@]/#/kernel/}" modules.builtin modules.order "$OLDPWD/$to")
    find "$to" -name '*.xz' -exec xz -d {} +
    busybox depmod -b "$qemu_root" "${to##*/}"
}

# qemu_boot SECONDS APPEND [OPTION...]: what the kernel that was unpacked prints; fails unless the
# last word of its init is "verdict: 0". APPEND goes to its command line.
qemu_boot() {
    local seconds=$1 append=$2
    shift 2
    (cd "$qemu_root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$qemu_work/initrd.gz"
    # Against two faults of qemu 7.2's emulation, both seen as panics under Linux 6.12: with a thread
    # per CPU it can miss the kernel's patches to its own code, and CMPXCHG16B can spoil the flags.
    nice timeout --foreground "$seconds" qemu-system-x86_64 \
        -accel tcg,thread=single -cpu max,-cx16 -m 1024 \
        -smp 2 -display none -nodefaults -serial stdio -no-reboot "$@" \
        -kernel "$qemu_work"/kernel/boot/vmlinuz-* -initrd "$qemu_work/initrd.gz" \
        -append "console=ttyS0 quiet panic=-1 $append" </dev/null |
        sed -u 's|\r||g' | tee "$qemu_work/log" || true
    grep -q '^verdict: 0$' "$qemu_work/log"
}
