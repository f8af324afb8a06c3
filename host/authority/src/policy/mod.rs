//! What a grant means on the network. What is granted at all is the contract's; see
//! [`leasehold_contract::authority::Policy`].

pub mod address;
