//! A proxy DHCP server, which sends firmware the URL of its image and leases no addresses. It is on the network of the
//! machine, next to QEMU's own DHCP server.

use std::net::UdpSocket;
use std::thread;

/// Address and port of the DHCP server on this network.
const SERVER: [u8; 4] = [10, 0, 2, 4];
const SERVER_MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0x0F, 0x04];
/// The vendor class of HTTP boot clients, which the response must repeat.
const HTTP_CLIENT: &[u8] = b"HTTPClient";
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Numbers of DHCP options.
const MESSAGE: u8 = 53;
const SERVER_ID: u8 = 54;
const CLASS: u8 = 60;
const FILE: u8 = 67;
const END: u8 = 255;

/// Lengths of the headers of Ethernet, IP and UDP, and of the BOOTP fields before the options.
const ETHERNET: usize = 14;
const HEADERS: usize = ETHERNET + 20 + 8;
const FIELDS: usize = 236;
/// BOOTP offsets of the transaction id and the hardware address.
const XID: std::ops::Range<usize> = 4..8;
const CARD: std::ops::Range<usize> = 28..44;

/// Returns the port that receives frames of a machine. The server responds as long as the process runs.
pub(crate) fn start_proxy_dhcp(url: &str) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let url = url.to_owned();
    thread::spawn(move || {
        let mut frame = [0; 2048];
        while let Ok((len, machine)) = socket.recv_from(&mut frame) {
            if let Some(offer) = offer_for(&frame[..len], &url) {
                // An error means that the machine has ended.
                let _ = socket.send_to(&offer, machine);
            }
        }
    });
    port
}

/// Returns the response to a frame, or `None` if the frame is not a request from an HTTP boot client.
fn offer_for(frame: &[u8], url: &str) -> Option<Vec<u8>> {
    let is_bootp = frame.get(12..14)? == [8, 0] && frame.get(23)? == &17 && frame.get(36..38)? == [0, 67];
    let (bootp, options) = frame.get(HEADERS..)?.split_at_checked(FIELDS)?;
    let is_discover = is_bootp && find_option(options.strip_prefix(&COOKIE)?, MESSAGE)? == [1];
    if !is_discover || !find_option(&options[4..], CLASS)?.starts_with(HTTP_CLIENT) {
        return None;
    }
    let mut answer = vec![2, 1, 6, 0];
    answer.extend(&bootp[XID]);
    // The fields `secs` and `flags` with the broadcast flag, and no addresses except the server's.
    answer.extend([0, 0, 0x80, 0]);
    answer.extend([[0; 4], [0; 4], SERVER, [0; 4]].concat());
    answer.extend(&bootp[CARD]);
    answer.resize(FIELDS, 0);
    answer.extend(COOKIE);
    for (code, value) in
        [(MESSAGE, &[2][..]), (SERVER_ID, &SERVER), (CLASS, HTTP_CLIENT), (FILE, url.as_bytes())]
    {
        answer.extend([code, u8::try_from(value.len()).unwrap()]);
        answer.extend(value);
    }
    answer.push(END);
    Some(broadcast_frame(&answer))
}

fn find_option(mut options: &[u8], option: u8) -> Option<&[u8]> {
    loop {
        let (code, rest) = options.split_first()?;
        let (len, rest) = rest.split_first()?;
        let (value, rest) = rest.split_at_checked((*len).into())?;
        match *code {
            END => return None,
            code if code == option => return Some(value),
            _ => options = rest,
        }
    }
}

/// Encodes a frame from the server's port to the broadcast address.
fn broadcast_frame(message: &[u8]) -> Vec<u8> {
    let udp_len = u16::try_from(message.len() + 8).unwrap();
    let mut ip =
        [&[0x45, 0][..], &(udp_len + 20).to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0], &SERVER].concat();
    ip.extend([255; 4]);
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = !u16::try_from((sum & 0xFFFF) + (sum >> 16)).unwrap();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    // The UDP checksum is optional.
    let udp = [&[0, 67, 0, 68][..], &udp_len.to_be_bytes(), &[0, 0]].concat();
    [&[255; 6][..], &SERVER_MAC, &[8, 0], &ip, &udp, message].concat()
}

#[test]
fn only_http_boot_firmware_gets_an_offer() {
    let ask = |class: &[u8]| {
        let mut message = vec![0; FIELDS];
        message[XID].copy_from_slice(&[1, 2, 3, 4]);
        message.extend(COOKIE);
        message.extend([MESSAGE, 1, 1, CLASS, u8::try_from(class.len()).unwrap()]);
        message.extend(class);
        message.push(END);
        let mut frame = broadcast_frame(&message);
        frame[36..38].copy_from_slice(&[0, 67]);
        frame
    };
    let answer = offer_for(&ask(b"HTTPClient:Arch:00016"), "http://10.0.2.2/a.iso").unwrap();
    assert_eq!(answer[HEADERS..][XID], [1, 2, 3, 4]);
    assert_eq!(find_option(&answer[HEADERS + FIELDS + 4..], FILE), Some(&b"http://10.0.2.2/a.iso"[..]));
    assert_eq!(offer_for(&ask(b"PXEClient"), "http://10.0.2.2/a.iso"), None);
    let frame = ask(b"HTTPClient");
    for len in 0..frame.len() - 1 {
        assert_eq!(
            offer_for(&frame[..len], "http://10.0.2.2/a.iso").is_some(),
            len >= frame.len() - 1,
            "{len}"
        );
    }
}
