#!/bin/sh
# Gives this machine the static network that was made for it.
#
# Below /etc/assisted/network there is a directory for each host. Its mac_interface.ini has a line
# <MAC>=<logical name> for each interface; beside it are either keyfiles (*.nmconnection), in which the logical names
# are to be replaced by those that the interfaces have here, or nmstate policies (*.yml), which find them themselves.
#
# NETWORK_ROOT is put before all paths; SETTLE_INTERVAL is the pause between two looks at the interfaces.
set -u
# File names are expanded in one place only.
set -f
umask 077
LC_ALL=C
export LC_ALL

root=${NETWORK_ROOT-}
hosts=$root/etc/assisted/network
sysfs=$root/sys/class/net
staging=$root/run/static-network
policies=$root/etc/nmstate
interval=${SETTLE_INTERVAL-1}
name_limit=15

log() {
    printf 'static network: %s\n' "$*"
}

# Prints the paths that a directory has for a pattern, a line each.
paths() {
    set +f
    for path in "$1"/$2; do
        [ ! -e "$path" ] || printf '%s\n' "$path"
    done
    set -f
}

# Prints the names of the interfaces, a line each.
interfaces() {
    paths "$sysfs" '*' | while IFS= read -r path; do
        [ "${path##*/}" = lo ] || printf '%s\n' "${path##*/}"
    done
}

# Waits until there are interfaces and no more appear, but not for ever.
settle() {
    looks=0
    same=0
    before=
    while [ "$same" -lt 3 ] && [ "$looks" -lt 30 ]; do
        sleep "$interval"
        now=$(interfaces)
        if [ -n "$now" ] && [ "$now" = "$before" ]; then same=$((same + 1)); else same=0; fi
        before=$now
        looks=$((looks + 1))
    done
    [ "$same" -ge 3 ] || log "warning: the interfaces have not settled in $looks looks"
}

# Prints a MAC address as a pattern for both cases.
mac_pattern() {
    printf '%s\n' "$1" |
        sed 's/[Aa]/[Aa]/g; s/[Bb]/[Bb]/g; s/[Cc]/[Cc]/g; s/[Dd]/[Dd]/g; s/[Ee]/[Ee]/g; s/[Ff]/[Ff]/g'
}

# Sets devices to words <MAC pattern>/<name>. Hardware comes first: what is built on it may have its address.
find_devices() {
    hardware=
    virtual=
    for name in $(interfaces); do
        [ -r "$sysfs/$name/address" ] || continue
        mac=
        read -r mac <"$sysfs/$name/address" || :
        [ -n "$mac" ] || continue
        word=$(mac_pattern "$mac")/$name
        if [ -e "$sysfs/$name/device" ]; then hardware="$hardware $word"; else virtual="$virtual $word"; fi
    done
    devices="$hardware $virtual"
}

# Sets real to the name of the interface with a MAC address.
find_real() {
    for device in $devices; do
        # shellcheck disable=SC2254 # it is a pattern
        case $1 in
            ${device%/*})
                real=${device##*/}
                return 0
                ;;
        esac
    done
    return 1
}

# Reads a map: sets pairs to words <logical name>/<real name> and absent to the logical names without an interface.
read_map() {
    pairs=
    absent=
    while IFS= read -r line || [ -n "$line" ]; do
        logical=${line#*=}
        case $logical in
            '' | *[[:space:]/]*) continue ;;
        esac
        if find_real "${line%%=*}"; then
            pairs="$pairs $logical/$real"
        else
            absent="$absent $logical"
        fi
    done <"$1"
}

# Sets renamed to what an interface of the host is called here. Fails where the name stands for an interface that is not
# here, while another one is called so.
rename() {
    renamed=$1
    for pair in $pairs; do
        if [ "${pair%/*}" = "$1" ]; then
            renamed=${pair##*/}
            return 0
        fi
    done
    for pair in $pairs; do
        case $1 in
            "${pair%/*}".?*)
                rename_vlan "$1" "${pair##*/}" "${1#"${pair%/*}"}"
                return 0
                ;;
        esac
    done
    for name in $absent; do
        case $1 in
            "$name" | "$name".*) [ ! -e "$sysfs/$name" ] || return 1 ;;
        esac
    done
}

# Sets renamed for <name> on <real name> with <.id>. What is too long loses the end of the real name, or its beginning
# if that is what another one has become.
rename_vlan() {
    for vlan in $vlans; do
        if [ "${vlan%/*}" = "$1" ]; then
            renamed=${vlan##*/}
            return 0
        fi
    done
    end=$2
    start=$2
    while [ $((${#start} + ${#3})) -gt "$name_limit" ] && [ -n "$start" ]; do
        start=${start%?}
        end=${end#?}
    done
    renamed=$start$3
    for vlan in $vlans; do
        [ "${vlan##*/}" != "$renamed" ] || renamed=$end$3
    done
    vlans="$vlans $1/$renamed"
}

# Copies a keyfile with the names that interfaces have here, all replaced at once.
rewrite() {
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
            id=* | interface-name=* | master=* | controller=* | parent=* | peer=* | primary=* | active_slave=*)
                rename "${line#*=}" || return 1
                line=${line%%=*}=$renamed
                ;;
            routing-rule*=*' iif '*)
                rest=${line#*' iif '}
                rename "${rest%% *}" || return 1
                line="${line%%' iif '*} iif $renamed${rest#"${rest%% *}"}"
                ;;
        esac
        printf '%s\n' "$line"
    done <"$1" >"$2"
}

# Stages the keyfiles of a host.
stage_keyfiles() {
    vlans=
    paths "$1" '*.nmconnection' >"$staging/list"
    while IFS= read -r keyfile <&3; do
        file=${keyfile##*/}
        if ! rename "${file%.nmconnection}" || ! rewrite "$keyfile" "$staging/rewritten"; then
            log "warning: $host: $file is left out: its interface is not here, and another one has its name"
            continue
        fi
        rename "${file%.nmconnection}"
        if [ -e "$staging/files/$renamed.nmconnection" ]; then
            log "error: $host: $file is left out: there is a $renamed.nmconnection already"
            continue
        fi
        mv "$staging/rewritten" "$staging/files/$renamed.nmconnection"
        staged=$((staged + 1))
        log "$host: $file is used as $renamed.nmconnection"
    done 3<"$staging/list"
}

# Copies the policies of a host to where nmstate looks for them.
stage_policies() {
    paths "$1" '*.yml' >"$staging/list"
    while IFS= read -r policy <&3; do
        mkdir -p "$policies"
        cp "$policy" "$policies/${policy##*/}"
        applied=$((applied + 1))
        log "$host: policy ${policy##*/} is used"
    done 3<"$staging/list"
}

# Uses a host's files if any of its interfaces is here.
use_host() {
    [ -f "$1/mac_interface.ini" ] || {
        log "warning: $host has no mac_interface.ini"
        return 0
    }
    read_map "$1/mac_interface.ini"
    [ -n "$pairs" ] || return 0
    matched=$((matched + 1))
    log "$host is for this machine:$pairs${absent:+; not here:$absent}"
    stage_keyfiles "$1"
    stage_policies "$1"
}

# Replaces the keyfiles of the target by the staged ones. They are copied, so that they get its SELinux label.
install_keyfiles() {
    if [ -e "$root/etc/initrd-release" ]; then
        target=$root/etc/coreos-firstboot-network
    else
        target=$root/etc/NetworkManager/system-connections
    fi
    mkdir -p "$target"
    paths "$target" '*' >"$staging/list"
    while IFS= read -r old <&3; do
        [ ! -f "$old" ] || rm -f "$old"
    done 3<"$staging/list"
    cp -R "$staging/files/." "$target/"
    log "$staged keyfiles are in $target"
}

# Lets nmstate apply the policies; what it made of them in the initrd is kept for the system that is booted.
apply_policies() {
    nmstatectl service || log "error: nmstatectl has failed"
    [ -e "$root/etc/initrd-release" ] || return 0
    mkdir -p "$root/etc/coreos-firstboot-network" "$root/etc/NetworkManager/system-connections"
    cp -R "$root/etc/NetworkManager/system-connections/." "$root/etc/coreos-firstboot-network/"
    "$root/usr/sbin/coreos-copy-firstboot-network" || log "error: coreos-copy-firstboot-network has failed"
}

if [ ! -d "$hosts" ]; then
    log "there is no $hosts: nothing to do"
    exit 0
fi
[ "${DISCOVERY_DELAY_SECONDS:-0}" -eq 0 ] || sleep "$DISCOVERY_DELAY_SECONDS"
settle
find_devices
rm -rf "$staging"
mkdir -p "$staging/files"
matched=0
staged=0
applied=0
paths "$hosts" 'host*' >"$staging/hosts"
while IFS= read -r directory <&4; do
    host=${directory##*/}
    use_host "$directory"
done 4<"$staging/hosts"
[ "$matched" -gt 0 ] || log "no host has an interface of this machine: nothing is changed"
[ "$staged" -eq 0 ] || install_keyfiles
[ "$applied" -eq 0 ] || apply_policies
rm -rf "$staging"
