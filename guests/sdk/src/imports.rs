//! What a provider may import. What is not used is left out of the component, and so is no wanted authority.

wit_bindgen::generate!({
    path: "../../wit",
    inline: "
        package leasehold:sdk;
        world imports {
            import leasehold:provider/types@0.1.0;
            import leasehold:provider/sync-types@0.1.0;
            import leasehold:host/transfer@0.1.0;
            import leasehold:host/log@0.1.0;
            import leasehold:host/state@0.1.0;
            import leasehold:host/jail@0.1.0;
            import leasehold:host/connect@0.1.0;
            import leasehold:host/egress-status@0.1.0;
            import wasi:io/error@0.2.12;
            import wasi:io/poll@0.2.12;
            import wasi:io/streams@0.2.12;
            import wasi:clocks/monotonic-clock@0.2.12;
            import wasi:clocks/wall-clock@0.2.12;
            import wasi:random/random@0.2.12;
            import wasi:http/types@0.2.12;
            import wasi:http/outgoing-handler@0.2.12;
        }
    ",
    world: "leasehold:sdk/imports",
    generate_all,
});
