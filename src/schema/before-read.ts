import { RefoldError } from '../errors.ts';
import { type GlobalPosition, laterPosition } from '../events/global-position.ts';
import type { ServedVersion } from '../projections/version-map.ts';
import type { OperationContext } from './operation-context.ts';

/**
 * What comes before a read of a version: it must be active, and have reached the position that the client demands.
 * Gives nothing where there is nothing to wait for, so that most reads wait for nothing.
 *
 * @throws RefoldError `PROJECTION_NOT_READY`, `POSITION_TIMEOUT`
 */
export function beforeRead(
  served: ServedVersion,
  context: OperationContext,
  position: GlobalPosition | undefined,
): Promise<void> | undefined {
  if (!served.active) return refuse(served, context);
  const demanded = demandedPosition(context, position);
  return demanded === null ? undefined : context.readModels.waitFor(served.projection, demanded);
}

/** The later of what the operation demands and what this part of it does. */
export function demandedPosition(
  { after }: OperationContext,
  position: GlobalPosition | undefined,
): GlobalPosition | null {
  if (position === undefined || after === null) return position ?? after;
  return laterPosition(position, after);
}

async function refuse({ projection }: ServedVersion, context: OperationContext): Promise<never> {
  const { name, version, id } = projection;
  const { state, position, head, progress } = await context.readModels.progress(projection);
  const fields = {
    projection: name,
    version,
    state,
    position: String(position),
    head: String(head),
    progress,
  };
  const percent = Math.floor(progress * 100);
  throw new RefoldError(
    'PROJECTION_NOT_READY',
    `${id} is ${state} and not active yet: ${percent} % done, at position ${position} of ${head}. Ask again later.`,
    fields,
  );
}
