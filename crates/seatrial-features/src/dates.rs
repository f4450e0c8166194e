//! Parts of a local date or time. The zones are compiled in, so that a host without them, or with other ones, agrees.

use jiff::{Timestamp, civil::DateTime, fmt::temporal::Pieces, tz::TimeZone};

use crate::{
    error::{Fault, SpecError},
    numeric::Num,
    spec::{DateInput, DateStep, Part},
};

/// A checked [`DateStep`].
#[derive(Debug)]
pub(crate) struct DatePart {
    part: Part,
    zone: TimeZone,
    pub(crate) input: DateInput,
    offset: i64,
}

impl DatePart {
    pub(crate) fn compile(step: &DateStep) -> Result<Self, SpecError> {
        let database = jiff::tz::TimeZoneDatabase::bundled();
        let zone = database.get(&step.zone).map_err(|_| {
            SpecError::new(format!("`zone` is `{}`: expected a name such as `Europe/Berlin`", step.zone))
        })?;
        Ok(Self { part: step.part, zone, input: step.input, offset: step.offset })
    }

    pub(crate) fn of_number(&self, number: Num) -> Result<i64, Fault> {
        let unit = if self.input == DateInput::Seconds { "seconds" } else { "milliseconds" };
        let wrong = || Fault::new(format!("{unit} since 1970 within the years -9999 to 9999"));
        let whole = match number {
            Num::Int(value) => value,
            Num::Float(value) => {
                let floor = value.floor();
                if floor.abs() > 1e18 {
                    return Err(wrong());
                }
                floor as i64
            }
        };
        let moment = match self.input {
            DateInput::Milliseconds => Timestamp::from_millisecond(whole),
            _ => Timestamp::from_second(whole),
        };
        Ok(self.read(self.zone.to_datetime(moment.map_err(|_| wrong())?)))
    }

    pub(crate) fn of_text(&self, text: &str) -> Result<i64, Fault> {
        let wrong = || Fault::new("an ISO 8601 date or time such as `2017-05-06T00:00:00+08:00`");
        let pieces = Pieces::parse(text).map_err(|_| wrong())?;
        if pieces.time_zone_annotation().is_some() {
            return Err(wrong());
        }
        let local = pieces.date().to_datetime(pieces.time().unwrap_or_default());
        let Some(offset) = pieces.to_numeric_offset() else { return Ok(self.read(local)) };
        let moment = offset.to_timestamp(local).map_err(|_| wrong())?;
        Ok(self.read(self.zone.to_datetime(moment)))
    }

    fn read(&self, local: DateTime) -> i64 {
        let part = match self.part {
            Part::Year => i64::from(local.year()),
            Part::Month => local.month().into(),
            Part::Day => local.day().into(),
            Part::DayOfYear => local.day_of_year().into(),
            Part::Weekday => local.weekday().to_monday_zero_offset().into(),
            Part::Hour => local.hour().into(),
            Part::Minute => local.minute().into(),
        };
        part.saturating_add(self.offset)
    }
}
