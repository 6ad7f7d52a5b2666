import release from './2.ts';
import { slowly } from './slowly.ts';

export default slowly(release);
