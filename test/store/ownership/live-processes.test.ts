import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { readLiveProcesses, readRunningDetails } from '../../../src/store/ownership/live-processes.ts';
import { announceProcess } from '../../../src/store/ownership/processes.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';

const { db } = await databaseOfFile();

test('processes are listed by host and number', async () => {
  const described = { role: 'worker', versions: [], payloadVersions: {}, reactorVersions: {} } as const;
  const nothing = { declares: [], owns: [], keeps: [] };
  for (const name of ['b:7', 'a:10145', 'a:9929', 'alone'])
    await announceProcess(db, { id: randomUUID(), name, ...described, ...nothing });
  const names = ['a:9929', 'a:10145', 'alone', 'b:7'];
  expect((await readLiveProcesses(db)).map(({ name }) => name)).toEqual(names);
  expect((await readRunningDetails(db, 10)).map(({ name }) => name)).toEqual(names);
});
