//! Builds the QEMU command line for a boot test.

use std::path::Path;
use std::process::Command;

use super::{BootMedia, BootTest, BootTestError, Firmware};

const QEMU: &str = "qemu-system-x86_64";

/// The files of UEFI firmware and of its variables, as installed by various distributions.
const UEFI: [(&str, &str); 3] = [
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
    ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
];
/// The same files for Secure Boot, with the usual vendor keys enrolled.
const SECURE_BOOT: [(&str, &str); 3] = [
    ("/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd", "/usr/share/edk2/ovmf/OVMF_VARS.secboot.fd"),
    ("/usr/share/OVMF/OVMF_CODE.secboot.fd", "/usr/share/OVMF/OVMF_VARS.ms.fd"),
];

pub(super) fn qemu_command(test: &BootTest) -> Result<Command, BootTestError> {
    if matches!(test.media, BootMedia::Http | BootMedia::Ipxe) && !is_url(&test.image) {
        return Err(BootTestError::NeedsUrl { image: test.image.clone() });
    }
    let mut command = Command::new(QEMU);
    if !test.emulate {
        // QEMU uses the first accelerator that works.
        command.args(["-accel", "kvm"]);
    }
    // RHEL 9 and later require more CPU features than QEMU's default model has.
    command.args(["-accel", "tcg", "-cpu", "max", "-machine", "q35"]);
    command.args(["-nodefaults", "-no-reboot", "-display", "none", "-vga", "std", "-serial", "stdio"]);
    command.args(["-m", &test.memory_mib.to_string(), "-device", "virtio-rng-pci"]);
    match test.firmware {
        Firmware::Bios => {}
        Firmware::Uefi => add_firmware(&mut command, &UEFI)?,
        Firmware::SecureBoot => {
            command.args(["-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"]);
            add_firmware(&mut command, &SECURE_BOOT)?;
        }
    }
    if test.media == BootMedia::Ipxe {
        command.args(["-netdev", &format!("user,id=net,bootfile={}", escaped_option_value(&test.image))]);
        command.args(["-device", "virtio-net-pci,netdev=net,bootindex=0"]);
        return Ok(command);
    }
    let drive = format!(
        "if=none,id=image,format=raw,readonly=on,file={}",
        escaped_option_value(&escaped_file_name(&test.image))
    );
    command.args(["-drive", &drive]);
    match test.media {
        BootMedia::Usb => {
            command.args(["-device", "qemu-xhci", "-device", "usb-storage,drive=image,bootindex=0"])
        }
        _ => command.args(["-device", "ide-cd,drive=image,bootindex=0"]),
    };
    // Without a boot ROM, so that the firmware does not try to boot from the network.
    command.args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="]);
    Ok(command)
}

fn add_firmware(
    command: &mut Command,
    locations: &[(&'static str, &'static str)],
) -> Result<(), BootTestError> {
    let installed = locations
        .iter()
        .find(|(code, variables)| Path::new(code).is_file() && Path::new(variables).is_file());
    let Some((code, variables)) = installed else {
        let looked_for = locations.iter().map(|(code, _)| *code).collect();
        return Err(BootTestError::NoFirmware { looked_for });
    };
    command.args(["-drive", &format!("if=pflash,unit=0,format=raw,readonly=on,file={code}")]);
    // Discard changes to the firmware variables after this boot.
    command.args(["-drive", &format!("if=pflash,unit=1,format=raw,snapshot=on,file={variables}")]);
    Ok(())
}

fn is_url(image: &str) -> bool {
    image.starts_with("http://") || image.starts_with("https://")
}

/// Returns a file name that QEMU does not interpret as a protocol, even if it contains colons.
fn escaped_file_name(image: &str) -> String {
    if is_url(image) || image.starts_with('/') { image.to_owned() } else { format!("./{image}") }
}

/// Escapes a value in a QEMU option by doubling its commas.
fn escaped_option_value(text: &str) -> String {
    text.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qemu_arguments(test: &BootTest) -> String {
        let command = qemu_command(test).unwrap();
        command.get_args().map(|it| it.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn file_names_are_escaped_in_options() {
        let line = qemu_arguments(&BootTest::new("nbd:a,snapshot=on.iso"));
        assert!(line.contains("file=./nbd:a,,snapshot=on.iso "), "{line}");
        let line = qemu_arguments(&BootTest::new("http://192.0.2.1/a,b.iso"));
        assert!(line.contains("file=http://192.0.2.1/a,,b.iso "), "{line}");
        let test = BootTest { media: BootMedia::Ipxe, ..BootTest::new("http://192.0.2.1/a,b") };
        assert!(qemu_arguments(&test).contains("bootfile=http://192.0.2.1/a,,b "));
    }

    #[test]
    fn kvm_is_tried_unless_emulated() {
        let test = BootTest::new("a.iso");
        assert!(qemu_arguments(&test).starts_with("-accel kvm -accel tcg "));
        assert!(qemu_arguments(&BootTest { emulate: true, ..test }).starts_with("-accel tcg "));
    }

    #[test]
    fn rejects_file_if_url_is_needed() {
        for media in [BootMedia::Http, BootMedia::Ipxe] {
            let refused = qemu_command(&BootTest { media, ..BootTest::new("a.iso") }).unwrap_err();
            assert!(matches!(refused, BootTestError::NeedsUrl { image } if image == "a.iso"));
        }
    }
}
