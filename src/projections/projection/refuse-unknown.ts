import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';

/** @throws RefoldError `INVALID_DECLARATION` if an option has a key that is not in `names`. */
export function refuseUnknownKeys(subject: string, option: string, given: object, names: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!names.includes(name))
      throw invalidDeclaration(subject, `unknown option '${name}' of ${option}.${closest(name, names)}`);
  }
}
