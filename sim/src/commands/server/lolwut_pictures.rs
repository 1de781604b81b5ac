//! Pictures of LOLWUT: squares that become disordered, and a town at night.

use std::f32::consts::SQRT_2;

use crate::env::Env;

/// Points in groups of two by four, each group a Braille character.
struct Canvas {
    width: i32,
    height: i32,
    signs: Vec<u8>,
}

impl Canvas {
    fn new(width: i32, height: i32) -> Canvas {
        let len = |points: i32, group: i32| usize::try_from((points + group - 1) / group).unwrap_or(0);
        Canvas { width, height, signs: vec![0; len(width, 2) * len(height, 4)] }
    }

    fn set(&mut self, x: i32, y: i32) {
        if (0..self.width).contains(&x) && (0..self.height).contains(&y) {
            // The fourth row was added to Braille later, and uses the last two bits.
            let bit = match (x % 2, y % 4) {
                (left_or_right, 3) => 6 + left_or_right,
                (0, line) => line,
                (_, line) => 3 + line,
            };
            let at = (y / 4) as usize * self.columns() + (x / 2) as usize;
            self.signs[at] |= 1 << bit;
        }
    }

    /// Returns the number of characters in a row.
    fn columns(&self) -> usize {
        (self.width as usize).div_ceil(2)
    }

    /// Draws a line by Bresenham's algorithm.
    fn line(&mut self, from: (i32, i32), to: (i32, i32)) {
        let ((mut x, mut y), (dx, dy)) = (from, ((to.0 - from.0).abs(), (to.1 - from.1).abs()));
        let mut error = dx - dy;
        loop {
            self.set(x, y);
            if (x, y) == to {
                return;
            }
            let twice = error * 2;
            if twice > -dy {
                error -= dy;
                x += (to.0 - x).signum();
            }
            if twice < dx {
                error += dx;
                y += (to.1 - y).signum();
            }
        }
    }

    /// Draws a square around a point, rotated by an angle.
    fn square(&mut self, x: i32, y: i32, side: f32, angle: f32) {
        let reach = (side / SQRT_2).round();
        let corner = |quarter: usize| {
            let turned = f64::from(std::f32::consts::FRAC_PI_4 * (1 + 2 * (quarter % 4)) as f32 + angle);
            let along = |part: f64, middle: i32| (part * f64::from(reach) + f64::from(middle)).round() as i32;
            (along(turned.sin(), x), along(turned.cos(), y))
        };
        (0..4).for_each(|quarter| self.line(corner(quarter), corner(quarter + 1)));
    }
}

/// Draws a random number between -1 and 1.
fn swing(env: &mut Env) -> f32 {
    env.random_below(2001) as f32 / 1000.0 - 1.0
}

/// Draws rows of squares in Braille, ordered at the top and increasingly disordered towards the
/// bottom, after Georg Nees.
pub(super) fn squares(env: &mut Env, columns: i64, in_row: i64, rows: i64) -> String {
    let width = columns as i32 * 2;
    let padding = if width > 4 { 2 } else { 0 };
    let side = (width - padding * 2) as f32 / in_row as f32;
    let height = (side * rows as f32) as i32 + padding * 2;
    let mut canvas = Canvas::new(width, height);
    for row in 0..rows {
        for column in 0..in_row {
            let middle = |at: i64| (at as f32 * side + side / 2.0 + padding as f32) as i32;
            let (mut x, mut y, mut angle) = (middle(column), middle(row), 0.0);
            if row > 1 {
                let disorder = row as f32 / rows as f32;
                angle = swing(env) * disorder;
                x = (x as f32 + swing(env) * disorder * side / 3.0) as i32;
                y = (y as f32 + swing(env) * disorder * side / 3.0) as i32;
            }
            canvas.square(x, y, side, angle);
        }
    }
    let mut text = String::new();
    for (row, y) in canvas.signs.chunks(canvas.columns().max(1)).zip((0..).step_by(4)) {
        text.extend(row.iter().filter_map(|sign| char::from_u32(0x2800 + u32::from(*sign))));
        // As on a server, a last row of characters with a single line of points gets no newline.
        if y != height - 1 {
            text.push('\n');
        }
    }
    text
}

/// Terminal colours of the town, from the background on.
const COLOURS: [&str; 4] = ["97;107", "37;47", "90;100", "30;40"];

/// Draws a town of three rows of houses with lit windows; the nearest row is the darkest.
pub(super) fn town(env: &mut Env, columns: i64, rows: i64) -> String {
    let (width, height) = (columns as i32, rows as i32);
    let mut points = vec![0u8; width as usize * height as usize];
    for distance in 1..COLOURS.len() {
        let mut left = -(env.random_below(3) as i32);
        while left < width {
            let (wide, highest) = (6 + env.random_below(8) as i32, height * (5 - distance as i32) / 5);
            let high = highest / 2 + env.random_below(highest as usize / 2 + 1) as i32;
            for y in height - high..height {
                for x in left.max(0)..(left + wide).min(width) {
                    let in_frame = (y + high - height) % 3 == 1 && (x - left) % 3 == 1 && x < left + wide - 1;
                    let lit = in_frame && y < height - 1 && env.random_below(3) == 0;
                    points[(y * width + x) as usize] = (distance - usize::from(lit)) as u8;
                }
            }
            left += wide - env.random_below(2) as i32;
        }
    }
    let mut text = String::new();
    for row in points.chunks(width.max(1) as usize) {
        for point in row {
            text.push_str(&format!("\x1b[0;{}m \x1b[0m", COLOURS[usize::from(*point) % COLOURS.len()]));
        }
        text.push('\n');
    }
    text
}
