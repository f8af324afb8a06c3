//! Creations that may have happened, and providers that are not to be had.

use super::acquire::states;
use super::fake::{ALL, Act, record};
use super::home::{Home, on_both, wanted};
use crate::{
    AcquisitionDiagnostic, AcquisitionPhase, CleanupRecord, Fault, LeaseError, Leases, Offers, State,
    TransientCategory, Wanted,
};
use std::time::Duration;

on_both!(
    a_provider_that_cannot_be_had_is_tried_again_after_30_and_60_seconds,
    a_failure_after_the_start_and_one_told_in_words_alone_are_not_tried_again,
    a_caller_that_goes_away_between_two_tries_ends_them,
    finding_nothing_proves_nothing_until_the_settle_window_ends,
    what_appears_late_is_ended,
    a_clock_that_is_set_back_neither_ends_the_window_early_nor_keeps_a_lease_waiting,
    a_record_leads_to_what_was_made_and_one_that_breaks_the_contract_is_refused,
    a_provider_that_cannot_look_is_asked_once_more_under_the_same_name,
    a_provider_that_was_taken_away_is_not_asked_for_anything,
);

fn diagnosed(elapsed: u64, started: bool, phase: AcquisitionPhase) -> Act {
    let (elapsed, budget) = (Duration::from_secs(elapsed), Duration::from_secs(180));
    Act::Diagnoses(AcquisitionDiagnostic { phase, elapsed, budget, started })
}

fn remote() -> Option<Offers> {
    Some(Offers { network: true, ..ALL })
}

async fn a_provider_that_cannot_be_had_is_tried_again_after_30_and_60_seconds(home: Home) {
    let leases = home.leases().await;
    let unavailable = Fault::Transient {
        category: TransientCategory::Network,
        retry_after: None,
        message: "connection refused".into(),
    };
    let cases =
        [(diagnosed(180, false, AcquisitionPhase::Create), "timeout"), (Act::Faults(unavailable), "network")];
    for (act, category) in cases {
        home.fake.script([act.clone(), Act::Fails, act.clone(), Act::Fails, act.clone(), Act::Fails]);
        let moving = async {
            for pause in [30, 60] {
                let pause = Duration::from_secs(pause);
                home.clock.pausing(|it| it == pause && leases_idle(&home)).await;
                home.clock.advance(pause);
            }
        };
        let (failed, ()) = tokio::join!(leases.acquire(wanted()), moving);
        let failed = failed.unwrap_err();
        assert_eq!(failed.code(), "environment_provider_unavailable");
        let text = failed.to_string();
        for expected in [category, "3 tries", "no work had started", "Nothing is tried again by itself"] {
            assert!(text.contains(expected), "{text}");
        }
        home.fake.back().script.clear();
        leases.reconcile().await.unwrap();
        // The third time it is there.
        home.fake.script([act.clone()]);
        let moving = async {
            home.clock.pausing(|it| it == Duration::from_secs(30) && leases_idle(&home)).await;
            home.clock.advance(Duration::from_secs(30));
        };
        let (acquired, ()) = tokio::join!(leases.acquire(wanted()), moving);
        acquired.unwrap();
    }
}

/// Whether the provider is not being called: the call's own time may be as long as the pause.
fn leases_idle(home: &Home) -> bool {
    home.clock.pauses().len() == 1 && home.fake.calls().last().is_some_and(|call| call == "find")
}

async fn a_failure_after_the_start_and_one_told_in_words_alone_are_not_tried_again(home: Home) {
    let leases = home.leases().await;
    let words = Fault::Failed { code: "timeout".into(), message: "timed out".into() };
    let acts = [
        diagnosed(180, true, AcquisitionPhase::Start),
        diagnosed(179, false, AcquisitionPhase::Create),
        diagnosed(180, false, AcquisitionPhase::Setup),
        Act::Faults(words),
        Act::Faults(Fault::Denied("no".into())),
    ];
    for act in acts {
        home.fake.script([act]);
        let failed = leases.acquire(wanted()).await.unwrap_err();
        assert_eq!(failed.code(), "setup_failed", "{failed}");
    }
}

async fn a_caller_that_goes_away_between_two_tries_ends_them(home: Home) {
    let leases = home.leases().await;
    home.fake.script([diagnosed(180, false, AcquisitionPhase::Create)]);
    tokio::select! {
        _ = leases.acquire(wanted()) => panic!("it is not there"),
        _ = home.clock.pausing(|it| it == Duration::from_secs(30) && leases_idle(&home)) => {}
    }
    leases.idle().await;
    assert_eq!(states(&leases).await, [State::Failed]);
}

/// A lease whose acquisition was cut off, at a back end that was never seen to have made anything.
async fn cut_off(home: &Home, leases: &Leases) {
    home.fake.back().offers = remote();
    home.fake.script([Act::Hangs]);
    let late =
        tokio::join!(leases.acquire(Wanted { budget: Some(Duration::from_secs(7)), ..wanted() }), async {
            home.fake.waits.notified().await;
            home.clock.pausing(|it| it == Duration::from_secs(7)).await;
            home.clock.advance(Duration::from_secs(7));
            home.clock.pausing(|it| it == Duration::from_secs(60)).await;
            home.clock.advance(Duration::from_secs(60));
        });
    late.0.unwrap_err();
    leases.idle().await;
    assert_eq!(states(leases).await, [State::PendingCleanup]);
}

async fn finding_nothing_proves_nothing_until_the_settle_window_ends(home: Home) {
    let leases = home.leases().await;
    cut_off(&home, &leases).await;
    // 607 seconds after it was asked for, of which 67 have passed.
    for _ in 0..17 {
        home.clock.advance(Duration::from_secs(30));
        let report = leases.sweep().await.unwrap();
        assert_eq!((report.unsettled.len(), report.unsettled[0].attempts), (1, 0));
        assert!(report.unsettled[0].last_error.clone().unwrap().contains("may still appear"));
    }
    home.clock.advance(Duration::from_secs(30));
    assert_eq!(leases.sweep().await.unwrap().settled[0].state, State::Failed);
}

async fn what_appears_late_is_ended(home: Home) {
    let leases = home.leases().await;
    cut_off(&home, &leases).await;
    let name = leases.list(crate::Filter::default()).await.unwrap()[0].id.clone();
    home.fake.back().allocations.insert(name.as_str().to_owned(), None);
    assert_eq!(leases.reconcile().await.unwrap().settled[0].state, State::Released);
    assert_eq!(home.fake.allocations(), 0);
}

async fn a_clock_that_is_set_back_neither_ends_the_window_early_nor_keeps_a_lease_waiting(home: Home) {
    let leases = home.leases().await;
    cut_off(&home, &leases).await;
    let began = leases.store().now_ms();
    // A year back: what is due in a year is looked at all the same, and nothing is given up for it.
    home.clock.set(began - 365 * 86_400_000);
    assert_eq!(leases.sweep().await.unwrap().unsettled.len(), 1);
    home.clock.advance(Duration::from_secs(300));
    assert_eq!(leases.sweep().await.unwrap().unsettled.len(), 1);
    // Right again, and the window has passed.
    home.clock.set(began + 607_000);
    assert_eq!(leases.sweep().await.unwrap().settled.len(), 1);
    // A lease in use is not ended for a wall that is set back.
    let lease = leases.acquire(wanted()).await.unwrap().lease;
    home.clock.set(began - 86_400_000);
    assert_eq!(leases.reconcile().await.unwrap().settled, []);
    leases.release(&lease.id, crate::Releasing::default()).await.unwrap();
    assert_eq!(leases.get(&lease.id).await.unwrap().used_ms, 0);
}

async fn a_record_leads_to_what_was_made_and_one_that_breaks_the_contract_is_refused(home: Home) {
    let leases = home.leases().await;
    home.fake.back().offers = remote();
    type Spoil = fn(&mut CleanupRecord);
    let spoils: [Spoil; 8] = [
        |it| it.creation_name = "../other".into(),
        |it| it.observed_id = Some("i".repeat(513)),
        |it| it.account_fingerprint = "0".repeat(63),
        |it| it.account_fingerprint = "A".repeat(64),
        |it| it.labels = vec![("a".into(), "b".into()); 17],
        |it| it.labels = vec![("key".into(), "a space".into())],
        |it| it.labels = vec![(String::new(), "b".into())],
        |it| it.labels = vec![("k".repeat(201), "b".into())],
    ];
    for spoil in spoils {
        home.fake.back().spoil = Some(spoil);
        home.fake.script([Act::Leaves(record(""))]);
        leases.acquire(wanted()).await.unwrap_err();
        let lease = leases.list(crate::Filter::default()).await.unwrap().pop().unwrap();
        assert_eq!(leases.store().creation(&lease.id).await.unwrap().record, None);
        // Found by its name all the same.
        assert_eq!((lease.state, home.fake.allocations()), (State::Released, 0));
        home.clock.advance(Duration::from_millis(1));
    }
    home.fake.back().spoil = None;
    home.fake.script([Act::Leaves(record(""))]);
    leases.acquire(wanted()).await.unwrap_err();
    let lease = leases.list(crate::Filter::default()).await.unwrap().pop().unwrap();
    let creation = leases.store().creation(&lease.id).await.unwrap();
    assert_eq!(
        (creation.record.unwrap().creation_name, creation.outcome.as_deref()),
        (lease.id.to_string(), Some("undone"))
    );
}

async fn a_provider_that_cannot_look_is_asked_once_more_under_the_same_name(home: Home) {
    let leases = home.leases().await;
    home.fake.back().offers = Some(Offers { find: false, ..ALL });
    home.fake.script([Act::DoesAndFails]);
    leases.acquire(wanted()).await.unwrap_err();
    assert_eq!(home.fake.calls(), ["acquire", "acquire", "destroy"]);
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Released], 0));
}

async fn a_provider_that_was_taken_away_is_not_asked_for_anything(home: Home) {
    let leases = home.leases().await;
    home.fake.back().unready = true;
    let refused = leases.acquire(wanted()).await.unwrap_err();
    assert!(matches!(refused, LeaseError::NotReady(_)), "{refused}");
    assert_eq!(states(&leases).await, []);
}
