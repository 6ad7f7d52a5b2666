/** Sends everything that `send` sends in one packet. Results arrive in the order of sending. */
export type Pipeline = <T>(send: () => T) => T;

/** Statements that do not need each other's results. */
export type Sends<T extends readonly unknown[]> = { readonly [Index in keyof T]: () => Promise<T[Index]> };

/**
 * Sends statements in order and returns all results: with a pipeline in one round trip, else one after the other. Settles only when none is
 * running any more, even if one fails.
 */
export async function roundTrip<T extends readonly unknown[]>(
  pipeline: Pipeline | undefined,
  sends: Sends<T>,
): Promise<T> {
  const answers: unknown[] = [];
  if (!pipeline) {
    for (const send of sends) answers.push(await send());
    return answers as unknown as T; // one result for each, in order
  }
  for (const answer of await Promise.allSettled(pipeline(() => sends.map((send) => send())))) {
    // The first failure is the cause: later statements fail because the transaction is aborted.
    if (answer.status === 'rejected') throw answer.reason;
    answers.push(answer.value);
  }
  return answers as unknown as T; // one result for each, in order
}
