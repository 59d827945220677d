//! Recorded results of commands on published images, as digests.
//!
//! The images are the `coreos-installer` fixtures, unpacked, in the folder that `KINDLING_INSTALLER_FIXTURES` names. No
//! other program is needed. The digests of embedded archives are not listed, because they depend on the xz encoder.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod support;

use sha2::{Digest, Sha256};
use support::{CONFIG, RunOutput, Scratch, check_each, published_images};

/// A published image with its recorded results.
struct RecordedImage {
    name: &'static str,
    image: &'static str,
    /// Digest after `iso kargs modify -a foobar=val`.
    kargs: Option<&'static str>,
    /// The digest that `miniso.dat` records.
    recorded: Option<&'static str>,
    /// Digests after `iso extract minimal-iso`, without and with `--rootfs-url https://example.com/rootfs`.
    minimal: Option<[&'static str; 2]>,
}

const KNOWN: &[RecordedImage] = &[
    RecordedImage {
        name: "embed-areas-2020-09",
        image: "748e9a3a5d2e3ad7013f6421a335ff2196823cf2f9987caa4c9e45def6b087fe",
        kargs: None,
        recorded: None,
        minimal: None,
    },
    RecordedImage {
        name: "embed-areas-2021-01",
        image: "92355b648201b260a76d4a7cc2b30d889d485878fdd2081894d8f9cd8631d64d",
        kargs: Some("451cef123776150cf4002220a1ee6b79c619d715a30b80a9a7b13fc147e749e9"),
        recorded: None,
        minimal: None,
    },
    RecordedImage {
        name: "embed-areas-2021-09",
        image: "62d2ccb2f9998ba7a9d88787690b49d0e6cda3b96ff3bea265dd4e30a2e1d472",
        kargs: Some("e1d4e924ef6aee57e98897fcec93186e1e34941dcc555b26212fdb1203ae7c9a"),
        recorded: None,
        minimal: None,
    },
    RecordedImage {
        name: "embed-areas-2021-12",
        image: "af3870b377dae61b51cec9b59e3b33baf711484aa0d32520a6ddb4d07398877f",
        kargs: Some("f863cb6e333d59609ab47fc7a4215b129fa10ae7c73e4ddb278dd5975d0d5136"),
        recorded: Some("df1ddfdb586c714e7f59d96f4bff582d13acc948a75bb0c4f29f4889806db226"),
        minimal: Some([
            "6158ad215448979f51c49e418efe02c04020467adeb99530b33b17c967f5cc43",
            "2c58aa8c76cdcb3361eac9766f5be72a1139c8d909475535ed4c2c89618c7923",
        ]),
    },
    RecordedImage {
        name: "embed-areas-2022-02",
        image: "634dadf7f9231b9820fdf43e25e31307c78540072126ec0479ca72d59eca17be",
        kargs: Some("97c7a16a3885634cd0f85dae8b691e5c03e44d45b50ce493473a5bb0d544cd02"),
        recorded: Some("c68b4a9a085eed2cdae1b6266a3d346c42b0d76f268af365bb9486a62075d55c"),
        minimal: Some([
            "1adee65e28f57ea2f3117d0aff0d7e30bd6e104f2e4c3c2be7f179473a7d0c10",
            "733d7e871a1ad2f6ae37d031465c0481d527e32d9ef4176df4d0cd1554a8773b",
        ]),
    },
    RecordedImage {
        name: "embed-areas-2022-09",
        image: "5ab68daec527a73a3dfbaeb21e4704202a563b8c5c0dc918e99575eb843ba911",
        kargs: Some("4e2993e0af1db715f86cfd708b358cb1fae3b77846721ad8c1b40e5fb0c739c3"),
        recorded: Some("06c84908aee79920995e11d2c990b6e05385154e033b567c564ef5a3f9a98089"),
        minimal: Some([
            "75ab369efe0198ffa96aed855b10dc1a608148232c36299014bbff95f58aedac",
            "143cf6dfd68494484e44146354c93a00d88d1245aedb1dc51adbf9f62485973e",
        ]),
    },
    RecordedImage {
        name: "embed-areas-2023-03.x86_64",
        image: "c4e985015b1bce61f1e965e2aa0873003621613296c6f5037cba8a4e7cac21ce",
        kargs: Some("e4223c39cf484287e03f3e509631f22b8147381b38f552e64ecaa36898af715c"),
        recorded: Some("8f447825e77125cd7444808acd5df8dd18b3abdffcb0a5171aa7f7b62c2baa9e"),
        minimal: Some([
            "34f052b485921f5cfc402c94d66220fcde09064eba217d0816fe21ae42e853f2",
            "f4e1cb87aeb8eb24fcfd022c32c0fc6559795785a75b2ff5994878cce8daecbd",
        ]),
    },
    RecordedImage {
        name: "embed-areas-2023-03.s390x",
        image: "a55d0d8a7dfce4f7674e68e2ec036da5b9c2e57da56bc1397ef6284ce7da8dca",
        kargs: None,
        recorded: Some("1eba30dede5045b239f0c6b67e38c3e07b26b881580a0aaf817a798dcd914087"),
        minimal: None,
    },
    RecordedImage {
        name: "embed-areas-2023-07.x86_64",
        image: "a4079e6ffe863a6ab4a1f6c3f8e52c9aa84619f770c1aaba9137bddb6ffc6519",
        kargs: Some("9f26236be90510b0a4ff63f0de7411d08d14086dcca73c0c9cefc84826441e07"),
        recorded: Some("b64f0261321433be7e437e95304481deb06736c19f052c3391b049d25d8f6411"),
        minimal: Some([
            "544c32c296a618d6eb2f6ff228abc2dbc2beb41bded341dcc43812b739e0538b",
            "ff74a08a251b1cd2a7923772b04bfed5be73e9b38de935a31873e7b0457d54d5",
        ]),
    },
    RecordedImage {
        name: "embed-areas-2023-07.s390x",
        image: "f365f000adf990ba79af6682533bce5872380eeaa5302161d352aadf15c3aa50",
        kargs: Some("28e2e56677b3a7b7379c4422bce06bcda18e62f484d2ef83a66ff94b65c555dc"),
        recorded: Some("f6a39f14b30e1919cc797cdc044fd926e08fde7df5b9b358609f651e970f97a0"),
        minimal: Some([
            "53413c1ecec58c97a07f214d476cb7cec9c70da964c749f72d6133c59005e2cf",
            "89745926e046a76d8b94fe7a74c2e3a7e3a4f2da9a6129f0d951b9a7c802f631",
        ]),
    },
];

/// The name and digest of a published image that is not a base image.
const SYNTHETIC: (&str, &str) =
    ("synthetic", "ee324769c67a40f0cd6f8093a44f45fa6149870b97c482c88eead3ce144765d6");

fn sha256(bytes: &[u8]) -> String {
    fixtures::hex(&Sha256::digest(bytes))
}

/// Runs a check for each recorded image in the folder, with a copy of the image as `image.iso` in a new folder.
fn check_each_recorded(check: impl Fn(&RecordedImage, &Scratch)) {
    let images = published_images();
    check_each(
        &images,
        |(name, _)| name.clone(),
        |(name, bytes)| {
            let Some(record) = KNOWN.iter().find(|record| record.name == name) else { return };
            let scratch = Scratch::new();
            scratch.write("image.iso", bytes);
            check(record, &scratch);
        },
    );
}

#[test]
fn fixtures_have_the_recorded_digests() {
    let images = published_images();
    if images.is_empty() {
        return;
    }
    let records = KNOWN.iter().map(|record| (record.name, record.image)).chain([SYNTHETIC]);
    for (name, digest) in records {
        let image = images.iter().find(|(image, _)| image == name);
        let (_, bytes) = image.unwrap_or_else(|| panic!("{name}.iso is missing"));
        assert_eq!(sha256(bytes), digest, "{name}");
    }
}

#[test]
fn modified_kernel_arguments_have_recorded_digests_and_reset_reverts_them() {
    check_each_recorded(|record, scratch| {
        let modified = scratch.run_kindling("iso kargs modify -a foobar=val image.iso");
        let Some(expected) = record.kargs else {
            return modified.expect_failure("No karg embed areas found; old or corrupted CoreOS ISO image");
        };
        modified.expect_success();
        assert_eq!(sha256(&scratch.read("image.iso")), expected);
        for reset in ["iso kargs reset", "iso reset"] {
            let restored = scratch.run_kindling(&format!("{reset} -o - image.iso")).expect_success();
            assert_eq!(sha256(&restored), record.image, "{reset}");
        }
        scratch.run_kindling("iso kargs modify -d foobar=val image.iso").expect_success();
        assert_eq!(sha256(&scratch.read("image.iso")), record.image);
    });
}

#[test]
fn minimal_images_have_the_recorded_digests() {
    check_each_recorded(|record, scratch| {
        let extract = |options: &str| -> RunOutput {
            scratch.run_kindling(&format!("iso extract minimal-iso {options} image.iso"))
        };
        let Some([plain, with_url]) = record.minimal else {
            let reason =
                if record.kargs.is_none() { "No karg embed areas found" } else { "does not support" };
            return extract("").expect_failure(reason);
        };
        assert_eq!(sha256(&extract("").expect_success()), plain);
        assert_eq!(sha256(&extract("--rootfs-url https://example.com/rootfs").expect_success()), with_url);
    });
}

/// A changed image cannot result in the recorded minimal image, and the error names the recorded digest.
#[test]
fn minimal_image_digests_are_recorded() {
    check_each_recorded(|record, scratch| {
        let (Some(digest), Some(_)) = (record.recorded, record.minimal) else { return };
        let text = scratch.read("image.iso");
        let kernel = b"the kernel";
        let place = text.windows(kernel.len()).position(|window| window == kernel).unwrap();
        let mut altered = text;
        altered[place] = b'T';
        scratch.write("image.iso", altered);
        let failed = scratch.run_kindling("iso extract minimal-iso image.iso");
        failed.expect_failure("wrong final digest");
        assert!(failed.stderr.contains(digest), "{}", failed.stderr);
    });
}

#[test]
fn removed_config_leaves_no_trace() {
    check_each_recorded(|record, scratch| {
        scratch.write("config.ign", CONFIG);
        scratch.run_kindling("iso ignition embed -i config.ign image.iso").expect_success();
        assert_ne!(sha256(&scratch.read("image.iso")), record.image);
        scratch.run_kindling("iso ignition remove image.iso").expect_success();
        assert_eq!(sha256(&scratch.read("image.iso")), record.image);
    });
}
