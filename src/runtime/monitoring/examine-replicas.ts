import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import type { ReadStores } from '../../store/read-store.ts';
import { readPrimaryState, readReplicaState } from '../../store/server/replica-state.ts';
import { type ConfiguredReplica, configuredReplicas, openWatch } from '../reads/open-replicas.ts';
import { historyProblem, replicaName, replicaProblem } from '../reads/replica.ts';
import type { Finding } from './examine.ts';

/** Examines the configured replicas as a gateway does. Changes nothing. */
export async function examineReplicas(
  config: Pick<Config, 'database' | 'readStores'>,
  stores: Pick<ReadStores, 'home' | 'apart'>,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const configured of configuredReplicas(config, stores)) findings.push(await replicaFinding(config, configured));
  return findings;
}

async function replicaFinding(config: Pick<Config, 'database'>, configured: ConfiguredReplica): Promise<Finding> {
  const { name } = configured.store;
  const { problem, behind } = await look(config, configured);
  if (problem !== undefined)
    return {
      subject: 'replicas',
      kind: 'problem',
      message: `${sentenceStart(replicaName(name))} is not read from: ${problem}`,
    };
  const where = behind === 0n ? 'has replayed everything' : `is ${behind} bytes of write-ahead log behind`;
  return { subject: 'replicas', kind: 'ok', message: `${sentenceStart(replicaName(name))} ${where}.` };
}

async function look(
  config: Pick<Config, 'database'>,
  configured: ConfiguredReplica,
): Promise<{ readonly problem?: string; readonly behind: bigint }> {
  const primary = configured.store.db;
  const watch = openWatch(config, configured);
  try {
    const state = await readReplicaState(watch);
    const now = await readPrimaryState(primary, state.known);
    const problem = replicaProblem(state, now) ?? historyProblem(state, now, primary.elsewhere?.log !== undefined);
    const behind = now.place.at - (state.place?.at ?? now.place.at);
    return problem === undefined ? { behind } : { problem: `${problem}.`, behind };
  } catch (error) {
    if (!(error instanceof RefoldError)) throw error;
    return { problem: error.message, behind: 0n };
  } finally {
    await watch.close();
  }
}

function sentenceStart(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
