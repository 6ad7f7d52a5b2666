import type { Asked } from '../../store/queries/answers.ts';

interface Waiting {
  readonly asked: Asked;
  resolve(answer: string): void;
  reject(error: unknown): void;
}

// With four, three quarters of what a statement costs beside its rows are spared; with more, the first would wait for the last.
const mostTogether = 4;
// Milliseconds. Four that take longer are answered sooner beside each other, as long as there are connections.
const longestTogether = 5;

/**
 * Sends the queries of one group that come in the same turn of the event loop together, since for a short list a round trip costs both
 * processes as much as its rows. Those that take long leave together only where `most` statements are under way: they would wait for a
 * connection anyway.
 */
export function createJoinedAnswers(
  send: (asked: readonly Asked[]) => Promise<readonly string[]>,
  most: number,
): (asked: Asked) => Promise<string> {
  // In the order in which they are sent: a group that leaves some behind comes last.
  const groups = new Map<Asked['group'], Waiting[]>();
  const took = new WeakMap<Asked['group'], number>();
  let underWay = 0;
  let isPlanned = false;

  function sendAll(): void {
    isPlanned = false;
    while (underWay < most && groups.size > 0) sendNext(mostAtOnce);
  }

  function mostAtOnce(group: Asked['group']): number {
    return (took.get(group) ?? Infinity) <= longestTogether ? mostTogether : 1;
  }

  function sendNext(mostOf: (group: Asked['group']) => number): void {
    for (const [group, waiting] of groups) {
      groups.delete(group);
      const leaving = waiting.splice(0, mostOf(group));
      if (waiting.length > 0) groups.set(group, waiting);
      void sendOff(group, leaving);
      return;
    }
  }

  async function sendOff(group: Asked['group'], leaving: readonly Waiting[]): Promise<void> {
    const startedAt = performance.now();
    underWay++;
    try {
      const answers = await send(leaving.map(({ asked }) => asked));
      noteTime(group, (performance.now() - startedAt) / leaving.length);
      for (const [index, { resolve }] of leaving.entries()) resolve(answers[index] as string); // one for each
    } catch (error) {
      for (const { reject } of leaving) reject(error);
    } finally {
      underWay--;
      sendNext(() => mostTogether);
    }
  }

  // Whatever else the machine does makes times longer, never shorter: so a short one counts at once, and long ones when there are many.
  function noteTime(group: Asked['group'], milliseconds: number): void {
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
