//! A run that goes on into another month: it keeps the hours of the month it is in, and one sum of all before.

use super::*;
use crate::budget::Hour;
use std::time::Duration;

#[test]
fn a_month_that_begins_makes_one_sum_of_the_hours_before_it() {
    let (_database, mut store) = fresh();
    let now = clock::now();
    let (earlier, later) = (ADMITTED, now.plus(Duration::from_secs(40 * 86400)));
    for (name, at) in [("a", earlier), ("b", now), ("c", now)] {
        let record = Record {
            admitted_at: at,
            ..complete(&running(name))
        };
        settle(&mut store, record).unwrap();
    }
    let before = store.mirror.month;
    let charged = Amounts {
        charged: 120,
        ..Amounts::NONE
    };
    assert_eq!(store.follow(later), Ok(vec![]));
    assert!(store.mirror.month > before && store.mirror.month > Hour::of(now));
    assert_eq!(store.total(), Ok(charged));
    store.come_back(later).unwrap();
    assert_eq!(store.follow(later), Ok(vec![]));
    assert_eq!(store.total(), Ok(charged));
}
