#!/bin/bash
# Brings the programs of OKD into a live system that comes without them: from the image with its RPMs, through an
# overlay over /usr, since that is read-only.
set -eu

image="$1"
packages=/tmp/rpms
needed_bytes=$((6 * 1024 * 1024 * 1024))

until podman pull --quiet "$image"; do
    echo "cannot pull $image, trying again" >&2
    sleep 5
done

mounted="$(podman image mount "$image")"
mkdir -p "$packages" /opt/openshift/openshift
cp -a "$mounted"/rpms/. "$packages"/
if [ -d "$mounted/manifests" ]; then
    cp -a "$mounted"/manifests/. /opt/openshift/openshift/
fi

layers="$(mktemp -d)"
mkdir "$layers/upper" "$layers/work"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$layers/upper,workdir=$layers/work" /usr
rpm --upgrade --verbose --hash "$packages"/*.rpm

podman image umount "$image"
podman rmi --force "$image"

mkdir -p /var/lib/kubelet
ln -sf /root/.docker/config.json /var/lib/kubelet/config.json

# The images of a cluster need more room than the live system gives itself.
disk=/run/ephemeral.xfsloop
if [ -f "$disk" ] && [ "$(stat --format=%s "$disk")" -le "$needed_bytes" ]; then
    truncate --size="$needed_bytes" "$disk"
    losetup --set-capacity /dev/loop0
    xfs_growfs /var
    mount -o remount,size=6G /run
fi
