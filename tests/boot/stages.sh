# What the system of a served image does after its first report, in the order of a live system: the network of this
# machine, the root file system over it, Ignition on a scratch root. The first process sources it; /bin/busybox is all
# there is. A line of the report begins with what it is of.
$busybox --install -s /bin
export PATH=/bin
mkdir -p /sys /run /unpacked /live
mount -t sysfs sysfs /sys
while read -r module; do insmod "/modules/$module.ko"; done </modules/order

# What a lease says, where there is no static network. The script is what udhcpc calls.
cat >/lease.sh <<'END'
#!/bin/sh
[ "$1" != bound ] || ip address add "$ip/$mask" dev "$interface"
END
chmod +x /lease.sh

network() {
    # The script takes the root for that of an initrd by this file, and puts keyfiles where initrds have them.
    : >/etc/initrd-release
    script=/usr/local/bin/pre-network-manager-config.sh
    [ ! -e "$script" ] || SETTLE_INTERVAL=0.2 "$script" | sed 's/^/log /'
    ip link set eth0 up
    keyfile=/etc/coreos-firstboot-network/eth0.nmconnection
    if [ -e "$keyfile" ]; then
        ip address add "$(sed -n 's/^address[0-9]*=\([^,]*\).*/\1/p' "$keyfile")" dev eth0
    else
        udhcpc -i eth0 -n -q -t 10 -s /lease.sh >/dev/null
    fi
    ip -4 -o address show dev eth0 | sed 's/.*inet \([^ ]*\).*/address \1/'
}

# isolinux and iPXE hand on the quotes around a value.
rootfs_url() {
    tr ' ' '\n' </proc/cmdline | sed -n 's/^coreos\.live\.rootfs_url=//p' | tr -d '"'
}

live_system() {
    wget -q -O /rootfs.img "$1" || return
    echo "rootfs $(sha256sum </rootfs.img | cut -d ' ' -f 1)"
    (cd /unpacked && cpio -i --quiet </rootfs.img)
    mount -t squashfs -o loop,ro /unpacked/root.squashfs /live || return
    mount -t tmpfs tmpfs /live/run
    mount -t proc proc /live/proc
    mount -o bind /dev /live/dev
    cp /config.ign /live/run/config.ign
    chroot /live /bin/sh /apply.sh
}

echo "STAGES BEGIN"
dmesg | sed -n 's/.*\(secureboot: .*\)/log \1/p'
network
url=$(rootfs_url)
[ -z "$url" ] || live_system "$url"
echo "STAGES END"
