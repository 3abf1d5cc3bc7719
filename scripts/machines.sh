# Read by `scripts/setup --test`: what the tests of other machines need, by apt. Whatever is missing in the end is named by
# the tests that did not run for it. Nothing is written into the clone.

# One small system for all tests, made once per list of packages: hosts in namespaces and the image of containers are layers
# above it. MNGR_TEST_MACHINES names another directory for it.
machines_cache=${MNGR_TEST_MACHINES:-${XDG_CACHE_HOME:-$HOME/.cache}/mngr-tests}
machines_without="going on without hosts in namespaces and containers: their tests will not run"

machines() {
    if ! has apt-get; then say "no apt-get here: $machines_without"; return 0; fi
    PATH=$PATH:/usr/sbin:/sbin
    machines_key=$(sha256sum <tests/machines/packages | cut -c1-16)
    missing=
    for pair in ssh:openssh-client ip:iproute2 bwrap:bubblewrap podman:podman runc:runc catatonit:catatonit \
        /usr/lib/podman/netavark:netavark debootstrap:debootstrap; do
        has "${pair%%:*}" || missing="$missing ${pair#*:}"
    done
    if ! has sshd; then
        # Where services start by themselves, installing this one would open the machine to the network.
        if [ -d /run/systemd/system ]; then
            say "no sshd here, and installing it starts a service: its tests will not run before \`apt-get install openssh-server\`"
        else
            missing="$missing openssh-server"
        fi
    fi
    # shellcheck disable=SC2086 # one word per package
    if [ -n "$missing" ] && ! (install_packages $missing); then say "$machines_without"; return 0; fi
    if [ "$(id -u)" != 0 ]; then say "not root: tests of namespace hosts and containers will not run"; return 0; fi
    mkdir -p "$machines_cache"
    (
        flock 9
        machine_root && machine_image
    ) 9>"$machines_cache/lock" || say "$machines_without"
}

# A directory appears under its name when it is complete; the drafts of set-ups that were killed are removed by the next one.
machine_root() {
    machine=$machines_cache/root-$machines_key
    [ ! -d "$machine" ] || return 0
    rm -rf "$machines_cache"/*.draft
    found=$(archive)
    if [ -z "$found" ]; then say "apt has no source with a system: see \`apt-get indextargets\`"; return 1; fi
    # shellcheck disable=SC2086 # suite, components and address
    set -- $found
    say "making a small $1 for the tests of other machines (two minutes, once) in $machine"
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [ -z "${http_proxy:-}" ] || export http_proxy
    if ! debootstrap --variant=minbase --components="$2" --include="$(paste -sd, tests/machines/packages)" \
        "$1" "$machine.draft" "$3" >"$machines_cache/debootstrap.log" 2>&1 9>&-; then
        tail -n 5 "$machines_cache/debootstrap.log" | sed 's/^/  /' >&2
        rm -rf "$machine.draft"
        say "debootstrap failed (is there a network?); its log is $machines_cache/debootstrap.log"
        return 1
    fi
    rm -rf "$machine.draft"/usr/share/doc/* "$machine.draft"/usr/share/man/* "$machine.draft"/usr/share/locale/* \
        "$machine.draft"/var/cache/apt/* "$machine.draft"/var/lib/apt/lists/* "$machine.draft"/etc/ssh/ssh_host_*
    mv "$machine.draft" "$machine"
}

# Suite, components and address of the system that this machine installs its own packages from.
archive() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI) $(ORIGIN)' 'Created-By: Packages' |
        awk '($4 == "Debian" || $4 == "Ubuntu") && $1 !~ /-/ {
                if (!suite) { suite = $1; address = $3 }
                if ($1 == suite && $3 == address && !seen[$2]++) all = all (all ? "," : "") $2
            }
            END { if (suite) print suite, all, address }'
}

# The same system as an image, in a store that each test has below its own.
machine_image() {
    store=$machines_cache/images-$machines_key
    [ ! -d "$store" ] || return 0
    say "making the image of the containers in $store"
    rm -rf "$store.draft"
    running=$(mktemp -d) # podman takes a short path only
    printf '[engine]\nlock_type = "file"\nruntime = "runc"\n' >"$running/conf"
    if ! tar -C "$machines_cache/root-$machines_key" -c . |
        CONTAINERS_CONF=$running/conf podman --root "$store.draft" --runroot "$running" --tmpdir "$running/tmp" \
            --storage-driver overlay import - localhost/mngr-machine:latest >"$machines_cache/podman.log" 2>&1 9>&-; then
        sed 's/^/  /' "$machines_cache/podman.log" >&2
        rm -rf "$running"
        return 1
    fi
    umount "$store.draft/overlay" 2>/dev/null || true
    rm -rf "$running"
    mv "$store.draft" "$store"
}
