#!/bin/bash
# The discovery ran from this disk, in a stateroot of its own, from which the machine never boots again.
set -eu

stateroot=/sysroot/ostree/deploy/rhcos

# A mount namespace of its own, so that /sysroot becomes writable for this script alone.
if [ "${1:-}" != --unshared ]; then
    exec unshare --mount "$0" --unshared
fi
mount -o remount,rw /sysroot

for name in rhcos install; do
    rpm-ostree cleanup --rollback --os="$name"
done

systemctl stop rpm-ostreed.service
for deployment in "$stateroot"/deploy/*/; do
    # Deployments are immutable, so that nobody removes them by accident.
    [ -d "$deployment" ] && chattr -i "$deployment"
done
rm -rf "$stateroot"
systemctl start rpm-ostreed.service
