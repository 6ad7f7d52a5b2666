import type { LiveProcess } from '../../store/ownership/live-processes.ts';
import { readEndingRule } from '../../store/registry/inline-versions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { losingProcesses, processesText } from '../versions/answering-versions.ts';
import { activeVersions } from './version-basis.ts';

/** What clients lose if a version is retired. */
export interface Retirement {
  /** Why it needs to be meant: it is the version that answers. Null if another one answers. */
  readonly answering: string | null;
  /** Which running processes it would leave without a version. Null if none. */
  readonly losing: string | null;
  /** Which rule for unique values it would end. Null if none. */
  readonly ending: string | null;
}

/** Sentences begin with the version: `cart_summary@1 answers the clients of …`. @param db the one of the version */
export async function retirementOf(db: Queryable, name: string, version: number): Promise<Retirement> {
  const active = await activeVersions(db, name);
  const isHighest = active.at(-1)?.version === version;
  const next = active.at(-2);
  const then = next
    ? `${name}@${next.version} would answer in its place`
    : `nothing would answer for '${name}' any more`;
  const answering = isHighest ? `is the version that answers; ${then}, and a retired version can't come back.` : null;
  // If it is the only active version, every process loses it.
  const isOnly = active.length === 1 && isHighest;
  const losing = isOnly ? [] : await losingProcesses(db, name, version);
  const rule = await readEndingRule(db, name, version);
  const ending = rule
    ? `is the last version that holds the unique rule of ${rule.columns.join(', ')}: nothing would check appends of ${rule.types.join(', ')} any more.`
    : null;
  return { answering, losing: losing.length > 0 ? losingText(name, losing) : null, ending };
}

function losingText(name: string, losing: readonly LiveProcess[]): string {
  const what = losing.length === 1 ? 'this process declares' : 'these processes declare';
  return `answers the clients of ${processesText(losing)}: ${what} no other active version of '${name}'.`;
}
