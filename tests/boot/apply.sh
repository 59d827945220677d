# Applies /run/config.ign with the real Ignition to a scratch root, and reports the result. Runs in the root file
# system from the server.
export PATH=/bin:/usr/sbin
cd /run || exit
mkdir -p root/etc/selinux root/var/home
cp /etc/passwd /etc/group /etc/shadow root/etc/
# There is no SELinux policy here, so labels are not needed.
printf 'SELINUX=disabled\nSELINUXTYPE=none\n' >root/etc/selinux/config
export IGNITION_CONFIG_FILE=config.ign
for stage in fetch files; do
    ignition -platform file -log-to-stdout -stage "$stage" -root /run/root -config-cache /run/cache \
        -state-file /run/state >"$stage.log" 2>&1
    status=$?
    echo "ignition $stage $status"
    [ "$status" -eq 0 ] || tail -n 8 "$stage.log" | sed 's/^/log /'
done
cd root || exit
find . -type f | while read -r path; do
    echo "file $(stat -c '%a %U' "$path") $(sha256sum "$path" | cut -d ' ' -f 1) ${path#.}"
done
sed -n 's/^\([^:]*\):.*/account \1/p' etc/passwd
sed -n 's/^enable \(.*\)/enabled \1/p' etc/systemd/system-preset/*.preset
