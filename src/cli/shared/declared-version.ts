import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { parseVersionId } from './version-argument.ts';

/** Returns the declaration of a version named on the command line. @throws RefoldError `INVALID_CONFIG`, `INVALID_TRANSITION` */
export function declaredVersion(config: Config, id: string): Projection {
  const { name, version } = parseVersionId(id);
  const projection = config.projections.find((one) => one.name === name && one.version === version);
  if (projection) return projection;
  const known = config.projections.map((one) => one.id);
  throw new RefoldError('INVALID_TRANSITION', `The application declares no ${id}.${closest(id, known)}`);
}
