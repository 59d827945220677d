#!/bin/sh
# After installation or upgrade: systemd reads the units again, and a running service becomes the new one.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart kindling.service
fi
