# Stages of a served image after its first report, in the order of a live system: the network of this
# machine, the root file system over it, Ignition on a scratch root. The first process sources this file; the only
# program is /bin/busybox. Each line of the report starts with its subject.
$busybox --install -s /bin
export PATH=/bin
mkdir -p /sys /run /unpacked /live
mount -t sysfs sysfs /sys
while read -r module; do
    # Otherwise the module creates a default bond.
    if [ "$module" = bonding ]; then set -- max_bonds=0; else set --; fi
    insmod "/modules/$module.ko" "$@"
done </modules/order

# Without a static network, uses DHCP. udhcpc calls the script.
cat >/lease.sh <<'END'
#!/bin/sh
[ "$1" != bound ] || ip address add "$ip/$mask" dev "$interface"
END
chmod +x /lease.sh

network() {
    # With this file, the script detects that it runs in an initrd, and writes keyfiles to the folder for initrds.
    : >/etc/initrd-release
    script=/usr/local/bin/pre-network-manager-config.sh
    [ ! -e "$script" ] || SETTLE_INTERVAL=0.2 "$script" | sed 's/^/log /'
    if [ -e /usr/sbin/NetworkManager ]; then
        keyfiles
    else
        first_card
    fi
    ip -4 -o address show scope global | sed 's/^[0-9]*: \([^ ]*\) *inet \([^ ]*\).*/network \1 has \2/'
    [ ! -e /proc/net/vlan ] || awk -F '[ |]+' 'NR > 2 { print "network " $1 " is VLAN " $2 " of " $3 }' /proc/net/vlan/config
    for bond in /proc/net/bonding/*; do
        [ ! -e "$bond" ] ||
            sed -n "s|^\(Bonding Mode\|Primary Slave\|Slave Interface\): \([^ ]* *([^)]*)\|[^ ]*\).*|network ${bond##*/}: \1 \2|p" "$bond"
    done | sort
}

# Uses keyfiles in the initramfs like a live system.
keyfiles() {
    mkdir -p /run/NetworkManager/system-connections /etc/NetworkManager /var/lib/NetworkManager
    cp /etc/coreos-firstboot-network/*.nmconnection /run/NetworkManager/system-connections
    chmod 600 /run/NetworkManager/system-connections/*
    /usr/lib/systemd/systemd-udevd --daemon
    ln -s systemd-udevd /usr/lib/systemd/udevadm
    /usr/lib/systemd/udevadm trigger --settle
    /usr/sbin/NetworkManager --configure-and-quit=initrd --no-daemon 2>&1 | sed 's/^/log /'
}

# Without NetworkManager, for one card: the address of its keyfile, or a lease.
first_card() {
    ip link set eth0 up
    keyfile=/etc/coreos-firstboot-network/eth0.nmconnection
    if [ -e "$keyfile" ]; then
        ip address add "$(sed -n 's/^address[0-9]*=\([^,]*\).*/\1/p' "$keyfile")" dev eth0
    else
        udhcpc -i eth0 -n -q -t 10 -s /lease.sh >/dev/null
    fi
}

# isolinux and iPXE pass on the quotes around a value.
rootfs_url() {
    tr ' ' '\n' </proc/cmdline | sed -n 's/^coreos\.live\.rootfs_url=//p' | tr -d '"'
}

# The volume that this system booted from: a CD, a stick, or a RAM disk of the firmware.
medium() {
    label=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^coreos\.liveiso=//p')
    for _ in $(seq 50); do
        device=$(findfs "LABEL=$label" 2>/dev/null) && break
        sleep 0.2
    done
    mkdir -p /medium
    mount -t iso9660 -o ro "$device" /medium && echo "medium ${device%%[0-9]*}"
}

live_system() {
    echo "rootfs $(sha256sum <"$1" | cut -d ' ' -f 1)"
    (cd /unpacked && cpio -i --quiet) <"$1"
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
if [ -n "$url" ]; then
    wget -q -O /rootfs.img "$url" && live_system /rootfs.img
else
    medium && live_system /medium/images/pxeboot/rootfs.img
fi
echo "STAGES END"
