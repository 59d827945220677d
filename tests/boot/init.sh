#!/bin/busybox sh
# The first process in the images of the boot tests. It prints its command line and files on the serial line, and then
# powers off.
busybox=/bin/busybox
$busybox mkdir -p /proc /dev
$busybox mount -t proc proc /proc
$busybox mount -t devtmpfs dev /dev
# Kernel messages must not interrupt our lines.
echo 1 >/proc/sys/kernel/printk
# The name of the serial line depends on the machine.
for serial in ttysclp0 hvc0 ttyAMA0 ttyS0; do
    [ ! -c /dev/$serial ] || break
done
exec >"/dev/$serial" 2>&1
cd /
echo "FACTS BEGIN"
echo "cmdline $($busybox cat /proc/cmdline)"
$busybox find . -xdev -type f -exec $busybox sha256sum {} +
echo "FACTS END"
# Served images have further stages.
[ ! -e /stages.sh ] || . /stages.sh
$busybox poweroff -f
