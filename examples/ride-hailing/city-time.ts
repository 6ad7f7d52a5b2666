const format = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'America/New_York',
  dateStyle: 'short',
  timeStyle: 'medium',
});

/** A moment in the time of the city's clocks, such as `2026-01-31T07:00:00`. */
export function cityTime(moment: string): string {
  return format.format(new Date(moment)).replace(' ', 'T');
}
