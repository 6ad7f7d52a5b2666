import { expect, test } from 'vitest';
import { type AnsweringCandidate, answeringVersions } from '../../../src/runtime/versions/answering-versions.ts';
import type { LiveProcess } from '../../../src/store/ownership/live-processes.ts';

const version = (id: string, state: AnsweringCandidate['state'], more: Partial<AnsweringCandidate> = {}) => {
  const [name = '', number] = id.split('@');
  return { name, version: Number(number), state, canary: null, error: null, ...more };
};
const gateway = (name: string, ...versions: string[]): LiveProcess => ({ name, role: 'gateway', versions });
const both = [version('balance@1', 'active'), version('balance@2', 'active')];

test('one version answers if all gateways declare it, whichever versions workers declare', () => {
  const worker: LiveProcess = { name: 'w:1', role: 'worker', versions: ['balance@1'] };
  const old: LiveProcess = { name: 'o:1', role: null, versions: ['balance@1', 'balance@2'] };
  expect(answeringVersions(both, [gateway('a:1', 'balance@1', 'balance@2'), old, worker])).toEqual([
    { name: 'balance', version: 2, canary: null, processes: ['a:1', 'o:1'] },
  ]);
});

test('gateways that declare other versions answer with their own, and one that declares none is ignored', () => {
  const gateways = [gateway('a:1', 'balance@1'), gateway('b:1', 'balance@2'), gateway('c:1', 'balance@3')];
  expect(answeringVersions([...both, version('balance@3', 'building')], [...gateways, gateway('d:1')])).toEqual([
    { name: 'balance', version: 2, canary: null, processes: ['b:1'] },
    { name: 'balance', version: 1, canary: null, processes: ['a:1'] },
    { name: 'balance', version: null, canary: null, processes: ['c:1'] },
  ]);
});

test('a canary answers in the gateways that declare it', () => {
  const rule = { percent: 5, header: null };
  const trial = version('balance@3', 'ready', { canary: rule });
  const gateways = [gateway('a:1', 'balance@2'), gateway('b:1', 'balance@2', 'balance@3')];
  expect(answeringVersions([...both, trial], gateways)).toEqual([
    { name: 'balance', version: 2, canary: null, processes: ['a:1'] },
    { name: 'balance', version: 2, canary: { version: 3, ...rule }, processes: ['b:1'] },
  ]);
});

test('an altered table answers nothing, a retired read model has no answering version, and without gateways the registry decides', () => {
  const altered = version('balance@2', 'active', { error: { code: 'TABLE_ALTERED' } });
  expect(answeringVersions([altered, version('openings@1', 'retired')], [])).toEqual([
    { name: 'balance', version: null, canary: null, processes: [] },
  ]);
});
