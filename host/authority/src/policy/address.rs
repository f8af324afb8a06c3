//! Which addresses a name may lead to.
//!
//! A grant names a host; whoever answers for that name decides on its addresses. So an address that is not
//! public has to be granted by itself: as a literal, as a network beside the name, or as `localhost`.

use ipnet::IpNet;
use leasehold_contract::authority::HostPattern;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The open network.
    Public,
    /// This machine.
    Loopback,
    /// A network that is not routed.
    Private,
    /// The neighbourhood of an interface.
    LinkLocal,
    /// Where clouds hand credentials to their machines.
    Metadata,
    /// Nothing a connection could lead to, or something no rule was made for.
    Special,
}

impl Place {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Public => "a public address",
            Place::Loopback => "this machine",
            Place::Private => "a private network",
            Place::LinkLocal => "a link-local address",
            Place::Metadata => "a cloud's metadata service",
            Place::Special => "a special address",
        }
    }

    /// What is at this address; an IPv4 address that travels inside an IPv6 one counts as itself.
    pub fn of(address: IpAddr) -> Place {
        if METADATA.contains(&address) {
            return Place::Metadata;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                Some(inside) => match Place::of(IpAddr::V4(inside)) {
                    // A translator reaches the open network; whether there is one is not ours to know.
                    Place::Public => Place::Public,
                    other => other,
                },
                None => of_v6(address),
            },
        }
    }
}

/// Addresses of metadata services that lie outside link-local networks, and the best known ones inside.
const METADATA: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Whether a connection for a host of this pattern may lead to this address.
///
/// A metadata service needs its very address; a network that happens to hold it is not enough.
pub fn reachable(host: &HostPattern, networks: &[IpNet], address: IpAddr) -> bool {
    let place = Place::of(address);
    if place == Place::Public || *host == HostPattern::Address(address) {
        return true;
    }
    let itself = canonical(address);
    if networks.iter().any(|network| {
        let whole = network.prefix_len() == network.max_prefix_len();
        (network.contains(&address) || network.contains(&itself)) && (whole || place != Place::Metadata)
    }) {
        return true;
    }
    place == Place::Loopback && matches!(host, HostPattern::Name(name) if is_localhost(name))
}

/// An IPv4 address for one that travels inside an IPv6 address.
pub fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(inner) => embedded(inner).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The names that always mean this machine.
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn of_v4(address: Ipv4Addr) -> Place {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Place::Loopback,
        (10, ..) | (192, 168, _) | (172, 16..=31, _) => Place::Private,
        // Shared space of carriers; clouds use it inside.
        (100, 64..=127, _) => Place::Private,
        (169, 254, _) => Place::LinkLocal,
        // This network, protocol assignments, documentation, benchmarks, multicast, reserved, broadcast.
        (0, ..)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18..=19, _)
        | (198, 51, 100)
        | (203, 0, 113)
        | (224.., ..) => Place::Special,
        _ => Place::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Place {
    let [first, second, ..] = address.segments();
    match first {
        _ if address.is_loopback() => Place::Loopback,
        0xfe80..=0xfebf => Place::LinkLocal,
        // Unique local, and the older site-local.
        0xfc00..=0xfdff | 0xfec0..=0xfeff => Place::Private,
        // What was assigned to the open network, but for documentation.
        0x2001 if second == 0x0db8 || second < 0x0200 => Place::Special,
        0x3fff if second < 0x1000 => Place::Special,
        0x2000..=0x3fff => Place::Public,
        _ => Place::Special,
    }
}

/// The IPv4 address inside an IPv6 one: mapped, compatible, translated (also by a local translator), 6to4,
/// Teredo, and the form of ISATAP.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(join(high, low)),
        // The unspecified address and loopback are not IPv4 addresses.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(join(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => {
            Some(join(high, low))
        }
        [0x2002, high, low, ..] => Some(join(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(join(!high, !low)),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn every_address_is_at_the_place_the_registries_say() {
        let cases = [
            ("93.184.215.14", Place::Public),
            ("2606:2800:220:1::1", Place::Public),
            ("127.0.0.1", Place::Loopback),
            ("127.255.255.254", Place::Loopback),
            ("::1", Place::Loopback),
            ("::ffff:127.0.0.1", Place::Loopback),
            ("::127.0.0.1", Place::Loopback),
            ("64:ff9b::7f00:1", Place::Loopback),
            ("64:ff9b:1::7f00:1", Place::Loopback),
            ("2002:7f00:1::", Place::Loopback),
            ("::ffff:0:127.0.0.1", Place::Loopback),
            ("10.0.0.1", Place::Private),
            ("172.16.0.1", Place::Private),
            ("172.31.255.255", Place::Private),
            ("172.32.0.1", Place::Public),
            ("192.168.1.1", Place::Private),
            ("100.64.0.1", Place::Private),
            ("fd12::1", Place::Private),
            ("fec0::1", Place::Private),
            ("::ffff:10.0.0.1", Place::Private),
            ("169.254.1.1", Place::LinkLocal),
            ("fe80::1", Place::LinkLocal),
            ("169.254.169.254", Place::Metadata),
            ("::ffff:169.254.169.254", Place::Metadata),
            ("64:ff9b::a9fe:a9fe", Place::Metadata),
            ("2002:a9fe:a9fe::", Place::Metadata),
            ("fd00:ec2::254", Place::Metadata),
            ("100.100.100.200", Place::Metadata),
            ("168.63.129.16", Place::Metadata),
            ("192.0.0.192", Place::Metadata),
            ("0.0.0.0", Place::Special),
            ("0.1.2.3", Place::Special),
            ("::", Place::Special),
            ("224.0.0.1", Place::Special),
            ("255.255.255.255", Place::Special),
            ("198.18.0.1", Place::Special),
            ("ff02::1", Place::Special),
            ("2001:db8::1", Place::Special),
            ("2001:0:1::80ff:fffe", Place::Loopback),
            ("fe80::5efe:7f00:1", Place::Loopback),
        ];
        for (text, expected) in cases {
            assert_eq!(Place::of(address(text)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_public_is_reached_only_when_it_is_named() {
        let name = |name: &str| HostPattern::Name(name.into());
        let at = |text: &str| HostPattern::Address(address(text));
        let cases: &[(HostPattern, &[&str], &str, bool)] = &[
            (name("api.example"), &[], "93.184.215.14", true),
            (name("api.example"), &[], "10.0.0.1", false),
            (name("api.example"), &["10.0.0.0/8"], "10.0.0.1", true),
            (name("api.example"), &["10.0.0.0/8"], "::ffff:10.0.0.1", true),
            (name("api.example"), &["10.0.0.0/8"], "127.0.0.1", false),
            (name("api.example"), &["169.254.0.0/16"], "169.254.1.1", true),
            (name("api.example"), &["169.254.0.0/16"], "169.254.169.254", false),
            (name("api.example"), &["169.254.169.254/32"], "169.254.169.254", true),
            (name("localhost"), &[], "127.0.0.1", true),
            (name("localhost"), &[], "::1", true),
            (name("localhost"), &[], "10.0.0.1", false),
            (name("app.localhost"), &[], "127.0.0.1", true),
            (name("notlocalhost"), &[], "127.0.0.1", false),
            (at("127.0.0.1"), &[], "127.0.0.1", true),
            (at("127.0.0.1"), &[], "127.0.0.2", false),
            (at("169.254.169.254"), &[], "169.254.169.254", true),
            (HostPattern::Any, &[], "127.0.0.1", false),
            (HostPattern::Any, &["0.0.0.0/0"], "192.168.0.1", true),
            (HostPattern::Any, &["0.0.0.0/0"], "169.254.169.254", false),
            (HostPattern::Below("example".into()), &[], "192.168.0.1", false),
        ];
        for (host, networks, to, expected) in cases {
            let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(reachable(host, &networks, address(to)), *expected, "{host} {networks:?} {to}");
        }
    }
}
