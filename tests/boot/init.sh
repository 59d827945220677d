#!/bin/busybox sh
# The first process of the images that the boot tests make. It tells on the serial line what it was started with,
# then ends the machine.
busybox=/bin/busybox
$busybox mkdir -p /proc /dev
$busybox mount -t proc proc /proc
$busybox mount -t devtmpfs dev /dev
# Messages of the kernel must not come between ours.
echo 1 >/proc/sys/kernel/printk
# The serial lines of other machines have other names.
for serial in ttysclp0 hvc0 ttyAMA0 ttyS0; do
    [ ! -c /dev/$serial ] || break
done
exec >"/dev/$serial" 2>&1
cd /
echo "FACTS BEGIN"
echo "cmdline $($busybox cat /proc/cmdline)"
$busybox find . -xdev -type f -exec $busybox sha256sum {} +
echo "FACTS END"
# Served images have more to do.
[ ! -e /stages.sh ] || . /stages.sh
$busybox poweroff -f
