import type { BatchableQuery } from '../../store/queries/compiled-responses.ts';

interface Waiting {
  readonly asked: BatchableQuery;
  resolve(answer: string | Promise<string>): void;
  reject(error: unknown): void;
}

// Four queries a statement save three quarters of a statement's fixed cost. With more, the first would wait for the last.
const maxTogether = 4;
// Milliseconds. If queries take longer, four separate statements in parallel finish sooner, as long as there are connections.
const longestTogether = 5;

/**
 * Batches queries of one group that arrive in the same turn of the event loop, because for a short list the round trip costs both
 * processes as much as the rows. Slow queries are batched only while `most` statements are running: they would wait for a
 * connection anyway.
 */
export function createQueryBatcher(
  send: (asked: readonly BatchableQuery[]) => Promise<readonly (string | Promise<string>)[]>,
  most: number,
): (asked: BatchableQuery) => Promise<string> {
  // In sending order: a group with queries left over moves to the end.
  const groups = new Map<BatchableQuery['group'], Waiting[]>();
  const took = new WeakMap<BatchableQuery['group'], number>();
  let underWay = 0;
  let isPlanned = false;

  function sendAll(): void {
    isPlanned = false;
    while (underWay < most && groups.size > 0) sendNext(maxAtOnce);
  }

  function maxAtOnce(group: BatchableQuery['group']): number {
    return (took.get(group) ?? Infinity) <= longestTogether ? maxTogether : 1;
  }

  function sendNext(maxOf: (group: BatchableQuery['group']) => number): void {
    for (const [group, waiting] of groups) {
      groups.delete(group);
      const leaving = waiting.splice(0, maxOf(group));
      if (waiting.length > 0) groups.set(group, waiting);
      void sendOff(group, leaving);
      return;
    }
  }

  async function sendOff(group: BatchableQuery['group'], leaving: readonly Waiting[]): Promise<void> {
    const startedAt = performance.now();
    underWay++;
    try {
      const answers = await send(leaving.map(({ asked }) => asked));
      noteTime(group, (performance.now() - startedAt) / leaving.length);
      for (const [index, { resolve }] of leaving.entries()) resolve(answers[index] ?? ''); // one for each
    } catch (error) {
      for (const { reject } of leaving) reject(error);
    } finally {
      underWay--;
      sendNext(() => maxTogether);
    }
  }

  // Other load on the machine only lengthens times. So a short time counts at once, and longer ones only when there are many.
  function noteTime(group: BatchableQuery['group'], milliseconds: number): void {
    took.set(group, Math.min(milliseconds, (took.get(group) ?? Infinity) * 1.2));
  }

  return (asked) =>
    new Promise((resolve, reject) => {
      const waiting = groups.get(asked.group) ?? [];
      waiting.push({ asked, resolve, reject });
      groups.set(asked.group, waiting);
      if (isPlanned || underWay >= most) return;
      isPlanned = true;
      setImmediate(sendAll);
    });
}
