import { randomNumbers } from '../../examples/shopping-cart/random-numbers.ts';
import type { InMemoryAppend } from '../../src/testing.ts';

/** Lines in the form of the real file: few accounts with many bookings. */
export function generateBankFile(seed: number, rows: number): readonly string[] {
  const random = randomNumbers(seed);
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T; // below length
  return Array.from({ length: rows }, (_, index) => {
    const day = new Date(Date.UTC(1993, 0, 1 + Math.floor(index / 40))).toISOString();
    const date = `${day.slice(2, 4)}${day.slice(5, 7)}${day.slice(8, 10)}`;
    const cents = Math.floor(random() * 5_000_000);
    const amount = cents % 3 === 0 ? `${Math.floor(cents / 100)}` : `${cents / 100}`;
    return [
      `{"_row":${index + 1}`,
      `"trans_id":"${100_000 + index}"`,
      `"account_id":"${Math.floor(random() * 60)}"`,
      `"date":"${date}"`,
      `"type":"${pick(['PRIJEM', 'VYDAJ', 'VYBER'])}"`,
      `"operation":${JSON.stringify(pick(['VKLAD', 'VYBER', 'PREVOD NA UCET', 'PREVOD Z UCTU', 'VYBER KARTOU', null]))}`,
      `"amount":${amount}`,
      `"balance":0}`,
    ].join(',');
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
    let signed = signedAmount(append);
    for (let at = place + late; random() < 1 / 20; ) {
      at += Math.ceil(random() * 300);
      const corrected = correctedAmount(signed, random());
      waiting.push({ at, append: correction(append, signed, corrected) });
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

function signedAmount({ events: [event] }: InMemoryAppend): string {
  const { amount } = event?.payload as { amount: string }; // of a booking
  return event?.type === 'Debited' && Number(amount) !== 0 ? `-${amount}` : amount;
}

function correction({ family, streamId, events: [event] }: InMemoryAppend, was: string, is: string): InMemoryAppend {
  const { bookingId, bookedOn, operation } = event?.payload as Record<string, string | null>; // of a booking
  return { family, streamId, events: [{ type: 'Corrected', payload: { bookingId, bookedOn, operation, was, is } }] };
}
