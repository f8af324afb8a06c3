//! What the library tells while it works: warnings for people, and spans for OpenTelemetry where that is built
//! in and asked for.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Telling goes on while this lives; what is still to be sent is sent when it ends.
#[must_use]
pub(crate) struct Telemetry {
    #[cfg(feature = "opentelemetry")]
    exporter: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

impl Telemetry {
    /// Begins to tell. Nothing is said on success, so people only see warnings.
    pub(crate) fn begin() -> Telemetry {
        let people = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .without_time()
            .with_target(false)
            .with_filter(LevelFilter::WARN);
        let subscriber = tracing_subscriber::registry().with(people);
        #[cfg(feature = "opentelemetry")]
        {
            let exporter = export::provider();
            let spans = exporter.as_ref().map(export::layer);
            subscriber.with(spans).init();
            Telemetry { exporter }
        }
        #[cfg(not(feature = "opentelemetry"))]
        {
            subscriber.init();
            Telemetry {}
        }
    }
}

#[cfg(feature = "opentelemetry")]
impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(exporter) = self.exporter.take()
            && let Err(error) = exporter.shutdown()
        {
            tracing::warn!(%error, "spans were not delivered");
        }
    }
}

#[cfg(feature = "opentelemetry")]
mod export {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::registry::LookupSpan;

    /// The variables that ask for an export, as every program with OpenTelemetry has them.
    const ASKED_BY: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

    /// Sends spans over OTLP, where a variable says whereto.
    pub(super) fn provider() -> Option<SdkTracerProvider> {
        ASKED_BY.iter().find(|name| std::env::var_os(name).is_some())?;
        let exporter = match opentelemetry_otlp::SpanExporter::builder().with_http().build() {
            Ok(exporter) => exporter,
            Err(error) => {
                use std::io::Write as _;
                // The subscriber is only being made.
                let _ = writeln!(std::io::stderr().lock(), "leasehold: no spans are exported: {error}");
                return None;
            }
        };
        let resource = Resource::builder().with_service_name("leasehold").build();
        Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
    }

    /// Spans of Leasehold itself; libraries have theirs.
    pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("leasehold"))
            .with_filter(Targets::new().with_target("leasehold", LevelFilter::INFO))
    }
}
