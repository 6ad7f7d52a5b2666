import { setTimeout } from 'node:timers/promises';
import { startServerProcess } from '../http/server-process.ts';
import { createCountedDatabase, startCountingServer } from '../many/counted-database.ts';
import type { Scenario } from '../scenario.ts';
import { projectionCount } from './many-projections.ts';

/**
 * Fifty processes of an application with 200 read models, which share their maintenance and serve clients: until the last of them listens, and at
 * rest. Measured once, because their start takes a small machine minutes. A quick run has ten.
 */
export const manyProcesses: Scenario = {
  name: 'many-processes',
  fullOnly: true,
  async run({ quick }) {
    const server = await startCountingServer();
    const database = await createCountedDatabase(server);
    const count = quick ? 10 : 50;
    const start = () => startServerProcess('many-projections-server.ts', database.url, String(projectionCount));
    const first = await start();
    await database.owned(projectionCount);
    await setTimeout(2000);
    const idleSeconds = quick ? 5 : 20;
    const atRest = async () => {
      await database.statements();
      await setTimeout(idleSeconds * 1000);
      return (await database.statements()) / idleSeconds;
    };
    const ofOne = await atRest();
    const begun = performance.now();
    const others = await Promise.all(Array.from({ length: count - 1 }, start));
    const seconds = (performance.now() - begun) / 1000;
    const processes = [first, ...others];
    // Until the units are spread evenly, and nothing moves any more.
    for (let least = 0; least < Math.floor(projectionCount / count); ) {
      const { rows } = await database.client.query<{ units: string }>(
        `select count(*) as units from refold.processors where status = 'running' group by owner`,
      );
      least = rows.length < count ? 0 : Math.min(...rows.map(({ units }) => Number(units)));
      await setTimeout(200);
    }
    // V8 still compiles what has just become hot.
    await setTimeout(quick ? 5000 : 60_000);
    const processor = async () => {
      const times: number[] = [];
      for (const process of processes) times.push(await process.processor());
      return times.reduce((sum, one) => sum + one, 0) / 1000;
    };
    const before = await processor();
    const idle = await atRest();
    const spent = (await processor()) - before;
    const connections = await database.connections();
    const memory: number[] = [];
    for (const process of processes) memory.push(await process.memory());
    await Promise.all(processes.map((process) => process[Symbol.asyncDispose]()));
    await database.client.end();
    await server.stop();
    const one = { better: 'less', target: {} } as const;
    const name = `many-processes-${count}`;
    return [
      { scenario: `${name}-start`, unit: 's', refold: [seconds], ...one },
      {
        scenario: `${name}-idle`,
        unit: 'statements/s each',
        refold: [idle / count],
        limit: [ofOne],
        limitName: 'one process alone',
        ...one,
      },
      { scenario: `${name}-idle-processor`, unit: 'ms/s each', refold: [spent / count / idleSeconds], ...one },
      { scenario: `${name}-connections`, unit: 'connections each', refold: [connections / count], ...one },
      { scenario: `${name}-memory`, unit: 'MB each', refold: memory.map((bytes) => bytes / 1024 / 1024), ...one },
    ];
  },
};
