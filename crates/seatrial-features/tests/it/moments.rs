//! Parts of local dates, over the hours that clocks skip and repeat.

use serde_json::{Value, json};

use crate::making::{of, one, try_one};

fn check(part: &str, zone: &str, input: &str, cases: &[(Value, f64)]) {
    let kind = if input == "iso" { "string" } else { "number" };
    let step = json!({"step": "date_part", "part": part, "zone": zone, "input": input});
    let plan = one("INT64", json!({"type": kind, "steps": [step]}));
    for (value, expected) in cases {
        assert_eq!(of(&plan, value), Ok(vec![*expected]), "{part} of {value} in {zone}");
    }
}

#[test]
fn moments_are_read_on_the_clock_of_the_zone() {
    // 1997-12-04 15:55:49 UTC, a Thursday.
    let moment = json!(881_250_949);
    check(
        "hour",
        "UTC",
        "seconds",
        &[(moment.clone(), 15.0), (json!(881_250_949.9), 15.0), (json!(-1), 23.0)],
    );
    check("hour", "Asia/Shanghai", "seconds", &[(moment.clone(), 23.0)]);
    check("hour", "Asia/Kolkata", "milliseconds", &[(json!(881_250_949_000_i64), 21.0)]);
    check("weekday", "UTC", "seconds", &[(moment.clone(), 3.0), (json!(0), 3.0), (json!(4 * 86_400), 0.0)]);
    check("day", "Asia/Tokyo", "seconds", &[(moment.clone(), 5.0)]);
    check("month", "UTC", "seconds", &[(moment.clone(), 12.0)]);
    check("day_of_year", "UTC", "seconds", &[(moment.clone(), 338.0)]);
    check("minute", "Asia/Kathmandu", "seconds", &[(moment, 40.0)]);
}

#[test]
fn the_hour_that_occurs_twice_and_the_one_that_does_not() {
    // Berlin, 2024: 02:30 is skipped on 31 March and comes twice on 27 October.
    let hours: Vec<(Value, f64)> =
        [(1_711_846_799, 1.0), (1_711_846_800, 3.0), (1_729_989_000, 2.0), (1_729_992_600, 2.0)]
            .into_iter()
            .map(|(seconds, hour)| (json!(seconds), hour))
            .collect();
    check("hour", "Europe/Berlin", "seconds", &hours);
}

#[test]
fn texts_with_and_without_an_offset() {
    let cases = [
        (json!("2017-05-06T00:00:00+08:00"), 0.0),
        (json!("2017-05-05T16:00:00Z"), 0.0),
        (json!("2017-05-06 00:00:00"), 0.0),
        (json!("2017-05-06T13:45:00.250"), 13.0),
        (json!("2017-05-06"), 0.0),
    ];
    check("hour", "Asia/Shanghai", "iso", &cases);
    check("weekday", "Asia/Shanghai", "iso", &[(json!("2017-05-05T16:00:00Z"), 5.0)]);
}

#[test]
fn what_is_no_moment_or_no_zone_is_named() {
    let step = |input: &str, zone: &str| json!([{"step": "date_part", "part": "hour", "zone": zone, "input": input}]);
    let texts = one("INT64", json!({"type": "string", "steps": step("iso", "UTC"), "missing_texts": []}));
    for text in ["", "yesterday", "2017-13-01", "06.05.2017", "2017-05-06T00:00[Asia/Tokyo]"] {
        assert!(
            of(&texts, &json!(text)).unwrap_err().contains("expected an ISO 8601 date or time"),
            "{text}"
        );
    }
    let seconds = one("INT64", json!({"type": "number", "steps": step("seconds", "UTC")}));
    for number in [json!(1e17), json!(1e300), json!(i64::MAX)] {
        assert!(of(&seconds, &number).unwrap_err().contains("expected seconds since 1970"), "{number}");
    }
    let refusal =
        try_one("INT64", json!({"type": "number", "steps": step("seconds", "Mars/Base")})).unwrap_err();
    assert!(refusal.contains("`zone` is `Mars/Base`: expected a name such as `Europe/Berlin`"), "{refusal}");
    let refusal = try_one("INT64", json!({"type": "number", "steps": step("iso", "UTC")})).unwrap_err();
    assert!(refusal.contains("expected type `string`"), "{refusal}");
}
