import { RefoldError } from '../../errors.ts';
import type { CanaryRule } from '../../projections/projection/version-map.ts';
import type { Database } from '../../store/postgres/database.ts';
import { answering } from '../../store/registry/all-registries.ts';
import { deleteCanary, writeCanary } from '../../store/registry/canaries.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import { recordOperation, recordTransition } from '../../store/registry/transitions.ts';
import { refuseBreaking } from '../schema-changes/breaking-clients.ts';
import type { SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { type ActivateOptions, expectVersion, refused, refusePaused, type TransitionReason } from './expect-version.ts';

/** Starts and ends canaries: a ready version answers some clients. */
export interface CanarySteps {
  /**
   * Lets a ready version answer some clients, in all processes, until it becomes active or {@link endCanary} is called. A projection has at
   * most one canary. Another call changes its rule.
   *
   * @throws RefoldError `INVALID_TRANSITION` if the version is not ready, no other version answers, or it would break clients
   */
  startCanary(
    name: string,
    version: number,
    rule: Partial<CanaryRule>,
    step: TransitionReason,
    options?: ActivateOptions,
  ): Promise<void>;
  /** Lets the active version answer all clients again, at once. @throws RefoldError `INVALID_TRANSITION` if there is no canary */
  endCanary(name: string, step: TransitionReason): Promise<{ version: number }>;
}

export function createCanarySteps(db: Database, declarations: SchemaDeclarations): CanarySteps {
  return {
    async startCanary(name, version, { percent = 0, header = null }, step, { allowBreaking = false } = {}) {
      if (!(percent >= 0 && percent <= 100) || (percent === 0 && header === null))
        throw refused(name, version, `is a canary for a share above 0 up to 100 or for a header, found ${percent} %.`);
      await db.transaction(async (tx) => {
        const { state, heldReason, ...found } = await expectVersion(tx, name, version);
        refusePaused(name, version, found);
        if (state !== 'ready') throw refused(name, version, `is ${state}; only a ready version can be a canary.`);
        const active = await answering(tx, name);
        if (!active || active.version > version)
          throw refused(
            name,
            version,
            `can't be a canary: ${active ? `${name}@${active.version} is above it` : 'no version answers the others'}.`,
          );
        if (!allowBreaking) await refuseBreaking(tx, declarations, name, version);
        await writeCanary(tx, name, version, { percent, header });
        const reason = `canary for ${canaryText({ percent, header })}: ${step.reason}`;
        await recordTransition(tx, {
          name,
          version,
          from: 'ready',
          to: 'ready',
          heldReason,
          actor: step.actor,
          reason,
        });
      });
    },
    endCanary: (name, step) =>
      db.transaction(async (tx) => {
        const running = (await readRegistry(tx, name)).find((entry) => entry.canary !== null);
        if (!running) throw new RefoldError('INVALID_TRANSITION', `No version of '${name}' is a canary.`, { name });
        const { version } = running;
        const { state, heldReason } = await expectVersion(tx, name, version);
        await deleteCanary(tx, name, version);
        const reason = `canary ended: ${step.reason}`;
        await recordOperation(tx, { name, version, state, heldReason }, { actor: step.actor, reason });
        return { version };
      }),
  };
}

/** `5 %`, `5 % and x-beta: 1` */
export function canaryText({ percent, header }: CanaryRule): string {
  const asked = header && `${header.name}: ${header.value ?? '*'}`;
  return [...(percent > 0 ? [`${percent} %`] : []), ...(asked ? [asked] : [])].join(' and ');
}
