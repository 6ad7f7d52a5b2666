import { changeOf } from '../../examples/bank/bookings.ts';
import type { BookingEvent } from '../../examples/bank/events.ts';
import { randomNumbers } from '../../examples/shopping-cart/random-numbers.ts';
import type { InMemoryAppend } from '../../src/testing.ts';

const kinds = [
  { type: 'PRIJEM', operation: 'VKLAD', k_symbol: null },
  { type: 'PRIJEM', operation: 'PREVOD Z UCTU', k_symbol: 'DUCHOD' },
  { type: 'PRIJEM', operation: null, k_symbol: 'UROK' },
  { type: 'VYDAJ', operation: 'VYBER', k_symbol: null },
  { type: 'VYBER', operation: 'VYBER', k_symbol: null },
  { type: 'VYDAJ', operation: 'VYBER KARTOU', k_symbol: null },
  { type: 'VYDAJ', operation: 'VYBER', k_symbol: 'SANKC. UROK' },
  { type: 'VYDAJ', operation: 'VYBER', k_symbol: 'SLUZBY' },
  { type: 'VYDAJ', operation: 'PREVOD NA UCET', k_symbol: ' ' },
] as const;

/** Lines in the form of the real file: few accounts with many bookings. Some balances are rounded by 0.10. */
export function generateBankFile(seed: number, rows: number): readonly string[] {
  const random = randomNumbers(seed);
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T; // below length
  const balances = new Map<string, number>();
  return Array.from({ length: rows }, (_, index) => {
    const day = new Date(Date.UTC(1993, 0, 1 + Math.floor(index / 40))).toISOString();
    const account = String(Math.floor(random() * 60));
    const kind = pick(kinds);
    const drawn = Math.floor(random() * 5_000_000);
    const cents = drawn % 3 === 0 ? drawn - (drawn % 100) : drawn;
    const rounding = random() < 0.05 ? pick([-10, 10]) : 0;
    const balance = (balances.get(account) ?? 0) + (kind.type === 'PRIJEM' ? cents : -cents) + rounding;
    balances.set(account, balance);
    return JSON.stringify({
      _row: index + 1,
      trans_id: String(100_000 + index),
      account_id: account,
      date: `${day.slice(2, 4)}${day.slice(5, 7)}${day.slice(8, 10)}`,
      ...kind,
      amount: cents / 100,
      balance: balance / 100,
      bank: kind.operation?.startsWith('PREVOD') ? 'YZ' : null,
      account: kind.operation?.startsWith('PREVOD') ? '4711' : null,
    });
  });
}

/**
 * Real-life changes to bookings: about every seventh is recorded late, up to 400 bookings after its place, and about every twentieth is corrected
 * some time after it was recorded: to another amount, to nothing, or from a credit to a debit. Some are corrected twice.
 */
export function* lateAndCorrected(appends: Iterable<InMemoryAppend>, seed: number): Generator<InMemoryAppend> {
  const random = randomNumbers(seed);
  const waiting: { at: number; append: InMemoryAppend }[] = [];
  let place = 0;
  for (const append of appends) {
    place++;
    const late = random() < 1 / 7 ? Math.ceil(random() * 400) : 0;
    waiting.push({ at: place + late, append });
    const booking = append.events.find(({ type }) => type !== 'AccountOpened' && type !== 'Corrected') as BookingEvent;
    let signed = changeOf(booking).toFixed(2);
    for (let at = place + late, n = 1; random() < 1 / 20; n++) {
      at += Math.ceil(random() * 300);
      const corrected = correctedAmount(signed, random());
      const { bookingId: corrects, bookedOn: correctsDay, balance } = booking.payload;
      const bookingId = `${corrects}-${n}`;
      const days = { bookedOn: dayAfter(correctsDay, Math.ceil(random() * 60)), correctsDay };
      const ids = { bookingId, corrects, operation: booking.type };
      const payload = { ...ids, ...days, was: signed, is: corrected, balance };
      const { family, streamId } = append; // not its idempotency key
      waiting.push({ at, append: { family, streamId, events: [{ type: 'Corrected', payload }] } });
      signed = corrected;
    }
    yield* due(place);
  }
  yield* due(Number.POSITIVE_INFINITY);

  function* due(now: number): Generator<InMemoryAppend> {
    const ready = waiting.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
    if (ready.length === 0) return;
    const later = waiting.filter(({ at }) => at > now);
    waiting.splice(0, waiting.length, ...later);
    for (const { append } of ready) yield append;
  }
}

function correctedAmount(signed: string, draw: number): string {
  if (draw < 0.3) return '0';
  if (draw < 0.6) return signed.startsWith('-') ? signed.slice(1) : `-${signed}`;
  return `${signed.startsWith('-') ? '-' : ''}${Math.floor(draw * 100_000)}.5`;
}

function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);
}
