import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type CartLog, createCartLog } from '../cart-log.ts';
import { cartSummary } from '../carts.ts';
import { check, checkSameRows } from '../check.ts';
import { cartSummaryBySql } from '../limits/set-based-build.ts';
import type { MemorySample } from '../memory-process.ts';
import { openClient } from '../open-client.ts';
import type { Scenario } from '../scenario.ts';

const megabyte = 1024 * 1024;

/** The memory of a process that folds a long log, and whether it grows with the log. Meanwhile a reactor falls further and further behind. */
export const memory: Scenario = {
  name: 'memory',
  async run({ server, quick }) {
    const events = quick ? 200_000 : 5_000_000;
    const { peak, growth, course } = await courseOf(await createCartLog(server, 'bench_memory', events, events / 20));
    for (const line of course) console.log(line);
    return [
      {
        scenario: 'memory-peak',
        unit: 'MB',
        better: 'less',
        refold: [peak / megabyte],
        target: {},
      },
      {
        scenario: 'memory-growth',
        unit: '× of its first half',
        better: 'less',
        refold: [growth],
        target: { atMost: 1.15 },
      },
    ];
  },
};

interface Course {
  /** The highest memory use at any moment, in bytes. */
  readonly peak: number;
  /** The peak of the second half of the log divided by that of the first half. */
  readonly growth: number;
  /** Memory over time, in twenty lines. */
  readonly course: readonly string[];
}

async function courseOf({ url, events, streams }: CartLog): Promise<Course> {
  const samples = await samplesOf(url);
  const client = await openClient(url);
  await cartSummaryBySql.build(client);
  await checkSameRows(client, cartSummary, cartSummaryBySql);
  await client.query('drop schema read_models cascade');
  await client.end();
  const peak = (some: readonly MemorySample[]) => Math.max(...some.map(({ rss }) => rss));
  const middle = samples.findIndex(({ position }) => position >= events / 2);
  return {
    peak: peak(samples),
    growth: peak(samples.slice(middle)) / peak(samples.slice(0, middle)),
    course: [
      `memory while ${events} events of ${streams} streams are folded:`,
      ...Array.from({ length: 20 }, (_, index) => samples[Math.floor((index * (samples.length - 1)) / 19)]).map(line),
    ],
  };
}

function line(sample: MemorySample | undefined): string {
  const { position, rss, heap } = sample ?? { position: 0, rss: 0, heap: 0 };
  return `  at ${String(position).padStart(8)}: ${Math.round(rss / megabyte)} MB resident, ${Math.round(heap / megabyte)} MB of it heap`;
}

async function samplesOf(url: string): Promise<MemorySample[]> {
  const child = fork(join(import.meta.dirname, '../memory-process.ts'), [url]);
  const samples: MemorySample[] = [];
  child.on('message', (sample) => samples.push(sample as MemorySample)); // what memory-process.ts sends
  await once(child, 'exit');
  check(
    samples.at(-1)?.done === true,
    () => `the process ended with ${child.exitCode} before its read models were active`,
  );
  return samples;
}
